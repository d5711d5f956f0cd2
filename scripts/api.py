"""python3 api.py OLD.json NEW.json: what differs between the public items of two versions of a crate, as rustdoc's JSON tells them.

Prints a line for each item that is gone or changed, which breaks those who use it, and for each that is new. Exit codes: 0 nothing breaks,
1 something does.
"""
import json
import sys


def bare(value):
    """A type or signature without what only numbers it."""
    if isinstance(value, dict):
        return {k: bare(v) for k, v in value.items() if k not in ("id", "span", "docs", "links")}
    return [bare(v) for v in value] if isinstance(value, list) else value


def text(*values):
    return json.dumps([bare(v) for v in values], sort_keys=True)


class Crate:
    """The public items of a crate: what and where, and everything about it that others may rely on."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            crate = json.load(file)
        self.index = crate["index"]
        self.found = {}
        self.seen = set()
        root = self.index[str(crate["root"])]
        self.module(root, root["name"])

    def item(self, number):
        return self.index.get(str(number))

    def add(self, kind, path, *about):
        self.found[kind, path] = text(*about)

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
            self.add(kind, path, inner)

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


def main():
    old, new = (Crate(path).found for path in sys.argv[1:3])
    gone = sorted(old.keys() - new.keys())
    changed = sorted(k for k in old.keys() & new.keys() if old[k] != new[k])
    for word, keys in (("gone", gone), ("changed", changed), ("new", sorted(new.keys() - old.keys()))):
        for kind, path in keys:
            print(f"{word:8}{kind} {path}")
    print(f"{len(new)} public items: {len(gone)} gone, {len(changed)} changed, {len(new) - len(old) + len(gone)} new")
    sys.exit(bool(gone or changed))


main()
