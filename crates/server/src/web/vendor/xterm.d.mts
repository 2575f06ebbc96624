/** What the console uses of @xterm/xterm. */
export interface Theme {
  [name: string]: string;
}
export interface Sequence {
  prefix?: string;
  intermediates?: string;
  final: string;
}
export interface Parser {
  registerCsiHandler(id: Sequence, handler: () => boolean): { dispose(): void };
  registerDcsHandler(id: Sequence, handler: () => boolean): { dispose(): void };
  registerOscHandler(id: number, handler: (words: string) => boolean): { dispose(): void };
}
export class Terminal {
  constructor(options: {
    cols?: number;
    rows?: number;
    scrollback?: number;
    fontFamily?: string;
    fontSize?: number;
    theme?: Theme;
    disableStdin?: boolean;
    cursorBlink?: boolean;
    screenReaderMode?: boolean;
    linkHandler?: { activate(event: MouseEvent, text: string): void } | null;
    minimumContrastRatio?: number;
  });
  readonly cols: number;
  readonly rows: number;
  readonly textarea: HTMLTextAreaElement | undefined;
  readonly parser: Parser;
  options: { theme?: Theme; disableStdin?: boolean };
  open(parent: HTMLElement): void;
  write(data: string | Uint8Array, parsed?: () => void): void;
  reset(): void;
  focus(): void;
  dispose(): void;
  loadAddon(addon: object): void;
  onData(listener: (data: string) => void): { dispose(): void };
  onBinary(listener: (data: string) => void): { dispose(): void };
  onResize(listener: (size: { cols: number; rows: number }) => void): { dispose(): void };
}
