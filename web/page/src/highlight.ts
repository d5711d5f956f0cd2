// Colours of the scenario language (KDL), and marks at its errors.

import type { ScriptError } from "../../package/src/types.js";
import { el } from "./dom.js";

const TOKEN =
  /(\/\/[^\n]*|\/\*[\s\S]*?\*\/|\/-)|("(?:[^"\\]|\\[\s\S])*"?)|(#?\b(?:true|false|null)\b|\b0x[0-9a-fA-F_]+\b|[-+]?\b\d[\d._]*(?:[a-z%]+)?\b)|([A-Za-z_][\w.-]*(?==))|([A-Za-z_][\w.-]*)/g;

const CLASSES = ["comment", "string", "number", "property", "word"];

interface Piece {
  from: number;
  to: number;
  kind: string;
}

function pieces(text: string): Piece[] {
  const found: Piece[] = [];
  let end = 0;
  for (const match of text.matchAll(TOKEN)) {
    if (match.index > end) found.push({ from: end, to: match.index, kind: "" });
    end = match.index + match[0].length;
    const kind = CLASSES.find((_, index) => match[index + 1] !== undefined) ?? "";
    found.push({ from: match.index, to: end, kind });
  }
  if (end < text.length) found.push({ from: end, to: text.length, kind: "" });
  return found;
}

/** The text in coloured pieces; the places of errors are underlined. */
export function highlight(text: string, errors: ScriptError[]): Node[] {
  const borders = new Set(errors.flatMap(({ from, to }) => [from, Math.max(to, from + 1)]));
  const nodes: Node[] = [];
  for (const { from, to, kind } of pieces(text)) {
    const inside = [...borders].filter((border) => border > from && border < to);
    const cuts = [from, ...inside.sort((one, other) => one - other), to];
    for (let index = 0; index + 1 < cuts.length; index += 1) {
      const start = cuts[index]!;
      const part = text.slice(start, cuts[index + 1]);
      const isWrong = errors.some(
        (error) => start >= error.from && start < Math.max(error.to, error.from + 1),
      );
      if (kind === "" && !isWrong) nodes.push(document.createTextNode(part));
      else nodes.push(el("span", { class: `${kind} ${isWrong ? "wrong" : ""}`.trim() }, part));
    }
  }
  return nodes;
}
