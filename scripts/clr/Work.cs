// A program whose events are known: it compiles, tiers, throws, collects, waits and unloads, and
// prints what it did as one line of JSON. It waits for a line before it begins and before it ends.
//
//     mcs -optimize+ -out:Work.dll -r:System.dll Work.cs
using System;
using System.Collections.Generic;
using System.IO;
using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

public class WorkException : Exception
{
    public WorkException(string text) : base(text) { }
}

public class Finalizable
{
    public static int Count;
    ~Finalizable() { Interlocked.Increment(ref Count); }
}

public static class Work
{
    static int caught, finallys, filters, contended, done;
    static object keep;

    public static int Main(string[] arguments)
    {
        Console.Out.WriteLine("ready");
        Console.Out.Flush();
        Console.In.ReadLine();
        Console.Out.WriteLine(Run());
        Console.Out.Flush();
        Console.In.ReadLine();
        return 0;
    }

    static string Run()
    {
        int[] before = Collections();
        CallHotMethods();
        Generic(1); Generic("a"); Generic(new Guid()); Generic(1.5);
        Exceptions(5);
        CollectGarbage();
        WaitForLocks();
        UsePool();
        getppid();
        int[] after = Collections();
        return "{\"collections\":[" + (after[0] - before[0]) + "," + (after[1] - before[1]) + ","
            + (after[2] - before[2]) + "],\"caught\":" + caught + ",\"finallys\":" + finallys
            + ",\"filters\":" + filters + ",\"finalized\":" + Finalizable.Count + ",\"contended\":"
            + contended + ",\"done\":" + done + "}";
    }

    static int[] Collections()
    {
        return new[] { GC.CollectionCount(0), GC.CollectionCount(1), GC.CollectionCount(2) };
    }

    // Tiers: 30 calls, and a pause in which the runtime compiles in the background.
    static void CallHotMethods()
    {
        for (int i = 0; i < 200; i++) { Loop(100); Twice(i); Thread.Sleep(i == 60 ? 250 : 0); }
        Thread.Sleep(300);
        for (int i = 0; i < 200; i++) Loop(100);
        Thread.Sleep(250);
        for (int i = 0; i < 50; i++) Loop(100);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Loop(int n) { int sum = 0; for (int i = 0; i < n; i++) sum += i ^ 3; return sum; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Twice(int n) { return n + n; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static T Generic<T>(T value) { return value; }

    static void Exceptions(int count)
    {
        for (int i = 0; i < count; i++)
        {
            try { try { Throw(i); } finally { finallys++; } } catch (WorkException) { caught++; }
        }
        try { Throw(1); } catch (WorkException e) when (Filter(e)) { filters++; caught++; }
        try { try { Throw(9); } catch (WorkException) { caught++; throw; } }
        catch (WorkException) { caught++; }
        try { try { Throw(9); } catch (WorkException e) { caught++; throw new InvalidOperationException("outer", e); } }
        catch (InvalidOperationException) { caught++; }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Throw(int i) { throw new WorkException("text " + i); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static bool Filter(Exception e) { return e.Message.EndsWith("1"); }

    static void CollectGarbage()
    {
        WeakReference method = DynamicMethod(), assembly = DynamicAssembly(), context = Context();
        for (int i = 0; i < 20 && (method.IsAlive || assembly.IsAlive || context.IsAlive); i++) Collect(2, 5);
        for (int i = 0; i < 3; i++) Collect(2, 0);
        for (int i = 0; i < 7; i++) new Finalizable();
        for (int generation = 0; generation < 3; generation++) GC.Collect(generation);
        GC.WaitForPendingFinalizers();
        var list = new List<byte[]>();
        for (int i = 0; i < 300; i++) list.Add(new byte[50000]);
        keep = list;
        list = null;
        keep = null;
        GCHandle pinned = GCHandle.Alloc(new byte[300000], GCHandleType.Pinned);
        GC.Collect();
        pinned.Free();
    }

    static void Collect(int generation, int pause)
    {
        GC.Collect(generation);
        GC.WaitForPendingFinalizers();
        Thread.Sleep(pause);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static WeakReference DynamicMethod()
    {
        var method = new DynamicMethod("Add", typeof(int), new[] { typeof(int), typeof(int) });
        Emit(method.GetILGenerator(), OpCodes.Ldarg_1);
        var add = (Func<int, int, int>)method.CreateDelegate(typeof(Func<int, int, int>));
        add(2, 3);
        return new WeakReference(method);
    }

    static void Emit(ILGenerator code, OpCode second)
    {
        code.Emit(OpCodes.Ldarg_0);
        code.Emit(second);
        code.Emit(OpCodes.Add);
        code.Emit(OpCodes.Ret);
    }

    // mcs compiles for .NET Framework: what .NET Core has elsewhere is found by reflection.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static WeakReference DynamicAssembly()
    {
        var define = typeof(AssemblyBuilder).GetMethod("DefineDynamicAssembly",
            new[] { typeof(AssemblyName), typeof(AssemblyBuilderAccess) });
        const int RunAndCollect = 9;
        var assembly = (AssemblyBuilder)define.Invoke(null,
            new object[] { new AssemblyName("Gone"), (AssemblyBuilderAccess)RunAndCollect });
        TypeBuilder type = assembly.DefineDynamicModule("Gone").DefineType("Gone", TypeAttributes.Public);
        MethodBuilder twice = type.DefineMethod("Twice", MethodAttributes.Public | MethodAttributes.Static,
            typeof(int), new[] { typeof(int) });
        Emit(twice.GetILGenerator(), OpCodes.Ldarg_0);
        Type created = type.CreateType();
        for (int i = 0; i < 3; i++) created.GetMethod("Twice").Invoke(null, new object[] { 21 });
        return new WeakReference(created);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static WeakReference Context()
    {
        const string Name = "System.Runtime.Loader.AssemblyLoadContext, System.";
        Type type = Type.GetType(Name + "Runtime.Loader") ?? Type.GetType(Name + "Private.CoreLib");
        object context = Activator.CreateInstance(type, new object[] { "Plugins", true });
        string folder = Path.GetDirectoryName(typeof(Work).Assembly.Location);
        object[] file = { Path.Combine(folder, "Plugin.dll") };
        var plugin = (Assembly)type.GetMethod("LoadFromAssemblyPath").Invoke(context, file);
        plugin.GetType("Plugin").GetMethod("Run").Invoke(null, new object[] { 5 });
        type.GetMethod("Unload").Invoke(context, null);
        return new WeakReference(context);
    }

    static void WaitForLocks()
    {
        object door = new object();
        for (int i = 0; i < 3; i++)
        {
            var ready = new ManualResetEvent(false);
            var thread = new Thread(() => { lock (door) { ready.Set(); Thread.Sleep(60); } });
            thread.Start();
            ready.WaitOne();
            lock (door) contended++;
            thread.Join();
        }
    }

    static void UsePool()
    {
        var all = new ManualResetEvent(false);
        for (int i = 0; i < 30; i++)
        {
            ThreadPool.QueueUserWorkItem(_ => { Thread.Sleep(5); if (Interlocked.Increment(ref done) == 30) all.Set(); });
        }
        all.WaitOne(20000);
        using (new Timer(_ => { }, null, 1, 5)) Thread.Sleep(60);
    }

    [DllImport("libc")]
    static extern int getppid();
}
