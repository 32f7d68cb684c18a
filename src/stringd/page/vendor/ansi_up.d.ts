/** The parsing half alone; its HTML is not used here. */
export interface Packet { kind: number; text: string; url: string }
export interface Colour { rgb: number[]; class_name: string }
export class AnsiUp {
  fg: Colour | null;
  bg: Colour | null;
  bold: boolean;
  faint: boolean;
  italic: boolean;
  underline: boolean;
  append_buffer(text: string): void;
  get_next_packet(): Packet;
  process_ansi(packet: Packet): void;
}
