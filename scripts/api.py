"""The public items of a crate, from rustdoc's JSON.

python3 api.py list CRATE.json       prints every item with its signature, one on each line
python3 api.py OLD.json NEW.json     prints the items that are gone, changed or new

Exit codes of the comparison: 0 nothing breaks users of the crate, 1 something does.
"""
import json
import sys


def unnumbered(value):
    """A type or signature without ids, places and documentation."""
    if isinstance(value, dict):
        return {k: unnumbered(v) for k, v in value.items() if k not in ("id", "span", "docs", "links")}
    return [unnumbered(v) for v in value] if isinstance(value, list) else value


def text(*values):
    return json.dumps([unnumbered(v) for v in values], sort_keys=True)


def shown(kind):
    """A type as Rust spells it."""
    if kind is None:
        return "()"
    if isinstance(kind, str):
        return "_" if kind == "infer" else kind
    (what, value), = kind.items()
    if what in ("generic", "primitive"):
        return value
    if what == "resolved_path":
        return path(value)
    if what == "borrowed_ref":
        lifetime = f"{value['lifetime']} " if value["lifetime"] else ""
        return f"&{lifetime}{'mut ' if value['is_mutable'] else ''}{shown(value['type'])}"
    if what == "tuple":
        return f"({', '.join(map(shown, value))})"
    if what == "slice":
        return f"[{shown(value)}]"
    if what == "array":
        return f"[{shown(value['type'])}; {value['len']}]"
    if what == "raw_pointer":
        return f"*{'mut' if value['is_mutable'] else 'const'} {shown(value['type'])}"
    if what == "impl_trait":
        return "impl " + bounds(value)
    if what == "dyn_trait":
        return "dyn " + " + ".join(path(t["trait"]) for t in value["traits"])
    if what == "qualified_path":
        trait = f" as {path(value['trait'])}" if (value.get("trait") or {}).get("path") else ""
        return f"<{shown(value['self_type'])}{trait}>::{value['name']}"
    if what == "function_pointer":
        return "fn" + function(value["sig"])
    return what


def path(value):
    name = (value.get("path") or value.get("name") or "_").split("::")[-1]
    args = value.get("args") or {}
    if "angle_bracketed" in args:
        inside = [argument(a) for a in args["angle_bracketed"]["args"]]
        inside += [f"{c['name']} = {shown(c['binding']['equality']['type'])}"
                   for c in args["angle_bracketed"]["constraints"]
                   if "type" in c["binding"].get("equality", {})]
        return f"{name}<{', '.join(inside)}>" if inside else name
    if "parenthesized" in args:
        inputs = ", ".join(map(shown, args["parenthesized"]["inputs"]))
        output = args["parenthesized"]["output"]
        return f"{name}({inputs})" + (f" -> {shown(output)}" if output else "")
    return name


def argument(value):
    if isinstance(value, str):
        return "_"
    (what, value), = value.items()
    if what == "type":
        return shown(value)
    return value["expr"] if what == "const" else value


def bounds(values):
    names = []
    for bound in values:
        if "trait_bound" in bound:
            modifier = "?" if bound["trait_bound"]["modifier"] == "maybe" else ""
            names.append(modifier + path(bound["trait_bound"]["trait"]))
        elif "outlives" in bound:
            names.append(bound["outlives"])
    return " + ".join(names)


def function(sig):
    inputs = ", ".join(f"{name}: {shown(kind)}" for name, kind in sig["inputs"])
    return f"({inputs})" + (f" -> {shown(sig['output'])}" if sig["output"] else "")


def signature(inner):
    """What stands after the name of a function, field, constant or alias."""
    what, value = next(iter(inner.items()))
    if what == "function":
        generics = []
        for param in value["generics"]["params"]:
            if "type" in param["kind"] and not param["kind"]["type"]["is_synthetic"]:
                limits = bounds(param["kind"]["type"]["bounds"])
                generics.append(param["name"] + (f": {limits}" if limits else ""))
        return (f"<{', '.join(generics)}>" if generics else "") + function(value["sig"])
    if what in ("struct_field", "assoc_type"):
        return f": {shown(value)}" if what == "struct_field" else ""
    if what in ("constant", "static", "type_alias", "assoc_const"):
        return f": {shown(value['type'])}" if "type" in value else ""
    return ""


class Crate:
    """The public items of a crate: what and where, and everything about it that others may rely on."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            crate = json.load(file)
        self.index = crate["index"]
        self.found = {}
        self.shown = {}
        self.seen = set()
        root = self.index[str(crate["root"])]
        self.module(root, root["name"])

    def item(self, number):
        return self.index.get(str(number))

    def add(self, kind, path, *about):
        self.found[kind, path] = text(*about)
        self.shown[kind, path] = signature(about[0]) if about and isinstance(about[0], dict) else ""

    def module(self, module, path):
        if (module["id"], path) in self.seen:
            return
        self.seen.add((module["id"], path))
        for number in module["inner"]["module"]["items"]:
            item = self.item(number)
            if item and item["visibility"] == "public":
                self.one(item, path)

    def one(self, item, path):
        kind, inner = next(iter(item["inner"].items()))
        if kind == "use":
            target = self.item(inner["id"])
            if target is None:
                self.add("use", f"{path}::{inner['name']}", inner["source"])
            elif inner["is_glob"]:
                self.module(target, path)
            else:
                self.one({**target, "name": inner["name"]}, path)
            return
        path = f"{path}::{item['name']}"
        open_ended = any("non_exhaustive" in str(a) for a in item["attrs"])
        if kind == "module":
            self.module(item, path)
        elif kind in ("struct", "union"):
            self.fields(item, inner["kind"] if kind == "struct" else inner, path, open_ended, inner["generics"])
            self.impls(inner["impls"], path)
        elif kind == "enum":
            variants = [self.item(n) for n in inner["variants"]]
            # Who matches on all of them does not know another one.
            self.add(kind, path, inner["generics"], None if open_ended else [v["name"] for v in variants])
            for variant in variants:
                shape = variant["inner"]["variant"]
                self.fields(variant, shape["kind"], f"{path}::{variant['name']}", False, shape["discriminant"])
            self.impls(inner["impls"], path)
        elif kind == "trait":
            items = [self.item(n) for n in inner["items"]]
            needed = [i["name"] for i in items if not next(iter(i["inner"].values())).get("has_body")]
            self.add(kind, path, inner["generics"], inner["bounds"], needed)
            for each in items:
                self.add("method", f"{path}::{each['name']}", each["inner"])
        else:
            self.add(kind, path, {kind: inner})

    def fields(self, item, shape, path, open_ended, about):
        what = next(iter(item["inner"]))
        if shape in ("plain", "unit"):
            return self.add(what, path, shape, about)
        form = "union" if "fields" in shape else next(iter(shape))
        shape = shape if form == "union" else shape[form]
        numbers = shape if isinstance(shape, list) else shape["fields"]
        shown = [self.item(n) if n is not None else None for n in numbers]
        names = [f["name"] for f in shown if f and f["visibility"] in ("public", "default")]
        hidden = len(names) < len(numbers) or (isinstance(shape, dict) and shape.get("has_stripped_fields"))
        # Where all fields are public it can be built by naming them, and another one breaks that.
        self.add(what, path, form, about, "open" if open_ended or hidden else names)
        for field in shown:
            if field and field["name"] in names:
                self.add("field", f"{path}.{field['name']}", field["inner"])

    def impls(self, numbers, path):
        for number in numbers:
            impl = self.item(number)["inner"]["impl"]
            if impl["is_synthetic"] or impl["blanket_impl"]:
                continue
            if impl["trait"]:
                self.add("impl", f"{impl['trait']['path']} {text(impl['trait'].get('args'))} for {path}", True)
                continue
            for one in impl["items"]:
                item = self.item(one)
                if item and item["visibility"] == "public":
                    self.add("method", f"{path}::{item['name']}", item["inner"])


def print_list(file):
    crate = Crate(file)
    lines = set()
    traits = {}
    for kind, where in crate.found:
        if kind == "impl":
            trait, _, subject = where.rpartition(" for ")
            traits.setdefault(subject, set()).add(trait.split(" ")[0])
        else:
            lines.add(f"{kind} {where}{crate.shown[kind, where]}")
    for subject, names in traits.items():
        lines.add(f"impls {subject}: {', '.join(sorted(names - {'StructuralPartialEq'}))}")
    print("\n".join(sorted(lines)))


def main():
    if sys.argv[1] == "list":
        print_list(sys.argv[2])
        return
    old, new = (Crate(path).found for path in sys.argv[1:3])
    gone = sorted(old.keys() - new.keys())
    changed = sorted(k for k in old.keys() & new.keys() if old[k] != new[k])
    for word, keys in (("gone", gone), ("changed", changed), ("new", sorted(new.keys() - old.keys()))):
        for kind, path in keys:
            print(f"{word:8}{kind} {path}")
    print(f"{len(new)} public items: {len(gone)} gone, {len(changed)} changed, {len(new) - len(old) + len(gone)} new")
    sys.exit(bool(gone or changed))


main()
