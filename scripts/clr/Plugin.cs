// An assembly that Work.cs loads into a context of its own and unloads.
using System.Runtime.CompilerServices;

public static class Plugin
{
    public static int Run(int x) { return Helper(x) + Helper(x + 1); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Helper(int x) { return x * 3; }
}
