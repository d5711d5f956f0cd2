// A program that is never run: its functions and lines are looked up in its PDB, and compared with
// what its DWARF information says. It needs no library.
#define NOINLINE __attribute__((noinline))
#define INLINE inline __attribute__((always_inline))

volatile int sink;

namespace shop {
INLINE int twice(int x) {
    sink += x;
    return x * 2;
}

INLINE int thrice(int x) {
    int y = twice(x);
    sink += y;
    return y + x;
}

class Cart {
public:
    NOINLINE int add(int price);
    NOINLINE static int tax(int price);
    int total;
};

int Cart::tax(int price) {
    for (int i = 0; i < 100; i++)
        sink += i;
    return thrice(price) + sink;
}

int Cart::add(int price) {
    total += tax(price);
    return total;
}

// One function for each number, so that the code fills a page.
template <int N> struct Step {
    NOINLINE static int run(int x) {
        sink = x + N;
        for (int i = 0; i < x; i++) {
            sink += twice(i) * N;
            if (sink > 1000 * N)
                sink -= thrice(N);
        }
        int next = Step<N - 1>::run(x);
        sink -= next;
        return next + N;
    }
};

template <> struct Step<0> {
    NOINLINE static int run(int x) { return x; }
};
}

static NOINLINE int helper(int x) {
    sink = x;
    return shop::Step<30>::run(x);
}

extern "C" int entry() {
    shop::Cart cart;
    cart.total = 0;
    int sum = 0;
    for (int i = 0; i < 10; i++)
        sum += cart.add(i) + helper(i);
    return sum;
}
