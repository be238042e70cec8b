/** Control characters but the line feed, and those that turn the direction of text. */
const UNSAFE = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

/**
 * Text that a terminal shows and does not obey. What the mirror tells holds words of origins: reasons, names of keys,
 * source addresses.
 */
export function printable(text: string): string {
  return text.replace(UNSAFE, (character) => (character === '\n' ? character : '\ufffd'))
}
