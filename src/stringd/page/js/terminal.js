/** A terminal's text, read from what it printed: commands with coloured lines. Pure but for its memory. */
import { AnsiUp } from "../vendor/ansi_up.js";

/**
 * @typedef {{ text: string, name: string }} Piece
 * @typedef {{ id: number, pieces: Piece[] }} Line
 * `screen` is the size of what a command draws on; `drawn` is what it printed and each new size there, `forgotten` how many of them are no longer kept.
 * @typedef {{ number: number, text: string, directory: string, by: string, at: number, status: number | null, ms: number, lines: Line[], lost: boolean, version: number, screen: [number, number] | null, drawn: (string | [number, number])[], forgotten: number }} Command
 */

const KEPT_PIECES = 2_000;
const KEPT_LINES = 3_000;
const KEPT_COMMANDS = 200;
const LONGEST_LINE = 4_000;
const [END, TEXT, INCOMPLETE, COLOURS, LINKED] = [0, 1, 2, 5, 6];

/** Window titles and the like, and what a terminal does not show. */
const TITLES = /\x1b\][^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\)/g;
const UNSHOWN = /[\x00-\x07\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]/g;

export class Terminal {
  constructor() {
    /** @type {Command[]} */ this.commands = [];
    this.missed = false;
    this.version = 0;
    this.#parser = new AnsiUp();
  }

  #parser;
  #rewrites = false;
  #count = 0;

  get running() {
    const last = this.commands.at(-1);
    return last && last.status === null && last.number ? last : undefined;
  }

  /** @param {any} event of `/topics/<user>/<topic>/output` */
  take(event) {
    this.version += 1;
    switch (event.kind) {
      case "began":
        this.#parser = new AnsiUp();
        this.#rewrites = false;
        this.#add({ number: event.number, text: event.text, directory: event.directory, by: event.by, at: Date.parse(event.ts), screen: event.screen ?? null });
        break;
      case "resized":
        this.#draw(event.screen);
        break;
      case "printed":
        this.#print(event.text);
        break;
      case "ended": {
        const command = this.commands.findLast((each) => each.number === event.number);
        if (command) Object.assign(command, { status: event.status, ms: event.ms, version: this.version, drawn: [] });
        break;
      }
      case "missed": {
        const last = this.commands.at(-1);
        if (last) last.lost = true;
        else this.missed = true;
        break;
      }
      case "cleared":
        this.commands = [];
        this.missed = false;
    }
  }

  /** @param {Partial<Command>} of */
  #add(of) {
    const made = { number: 0, text: "", directory: "", by: "", at: 0, status: null, ms: 0, lines: [], lost: false, version: this.version, screen: null, drawn: [], forgotten: 0, ...of };
    this.commands.push(made);
    if (this.commands.length > KEPT_COMMANDS) this.commands.shift();
    return made;
  }

  /** @param {string} text */
  #print(text) {
    // What comes while no command runs is from jobs in the background.
    const last = this.commands.at(-1);
    const command = last && (last.status === null || last.number === 0) ? last : this.#add({});
    command.version = this.version;
    if (command.screen) return this.#draw(text);
    this.#parser.append_buffer(text.replace(TITLES, "").replace(UNSHOWN, ""));
    for (;;) {
      const packet = this.#parser.get_next_packet();
      if (packet.kind === END || packet.kind === INCOMPLETE) break;
      if (packet.kind === COLOURS) this.#parser.process_ansi(packet);
      else if (packet.kind === TEXT || packet.kind === LINKED) this.#write(command, packet.text);
    }
    if (command.lines.length > KEPT_LINES) {
      command.lines.splice(0, command.lines.length - KEPT_LINES);
      command.lost = true;
    }
  }

  /** @param {string | [number, number]} piece */
  #draw(piece) {
    const command = this.running;
    if (!command?.screen) return;
    command.drawn.push(piece);
    if (Array.isArray(piece)) command.screen = piece;
    if (command.drawn.length > KEPT_PIECES) {
      command.forgotten += command.drawn.splice(0, KEPT_PIECES / 2).length;
      command.lost = true;
    }
  }

  /** @param {Command} command @param {string} text */
  #write(command, text) {
    const name = this.#name();
    for (const part of text.split(/([\n\r\b])/)) {
      if (part === "") continue;
      const line = command.lines.at(-1) ?? this.#line(command);
      if (part === "\n") {
        this.#line(command);
        this.#rewrites = false;
      } else if (part === "\r") this.#rewrites = true;
      else if (part === "\b") this.#erase(line);
      else {
        if (this.#rewrites) line.pieces = [];
        this.#rewrites = false;
        this.#append(line, part, name);
      }
    }
  }

  /** @param {Command} command @returns {Line} */
  #line(command) {
    const made = { id: ++this.#count, pieces: [] };
    command.lines.push(made);
    return made;
  }

  /** @param {Line} line @param {string} text @param {string} name */
  #append(line, text, name) {
    const room = LONGEST_LINE - line.pieces.reduce((sum, each) => sum + each.text.length, 0);
    if (room <= 0) return;
    const last = line.pieces.at(-1);
    if (last?.name === name) line.pieces[line.pieces.length - 1] = { text: last.text + text.slice(0, room), name };
    else line.pieces.push({ text: text.slice(0, room), name });
  }

  /** @param {Line} line */
  #erase(line) {
    const last = line.pieces.pop();
    if (last && last.text.length > 1) line.pieces.push({ ...last, text: last.text.slice(0, -1) });
  }

  /** The classes of the colours and weights that count now. */
  #name() {
    const { fg, bold, faint, italic, underline } = this.#parser;
    return [fg && fg.class_name !== "truecolor" && fg.class_name, bold && "t-bold", faint && "t-faint", italic && "t-italic", underline && "t-under"].filter(Boolean).join(" ");
  }
}
