/** What the console uses of @xterm/addon-fit. */
export class FitAddon {
  fit(): void;
  proposeDimensions(): { cols: number; rows: number } | undefined;
}
