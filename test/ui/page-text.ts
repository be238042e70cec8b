/** What a reader sees of an escaped text without markup. */
function readable(text: string): string {
  const entities: Record<string, string> = { lt: '<', gt: '>', quot: '"', '#39': "'", amp: '&' }
  return text.replaceAll(/<[^>]*>/g, '').replaceAll(/&(lt|gt|quot|#39|amp);/g, (_all, name) => entities[name] ?? '')
}

/** One block of code of a page. */
export interface ShownCode {
  readonly caption: string
  /** Attributes of the part of the page that it opens: the answers it belongs to. */
  readonly part: string
  /** As it would be copied. */
  readonly code: string
}

/** Every block of code of a page, in its order. */
export function codeBlocksIn(html: string): ShownCode[] {
  const pattern =
    /(?:<div ([^>]*)>)?<figure class="code">\s*<figcaption><span>(.*?)<\/span>.*?<pre><code>(.*?)<\/code><\/pre>/gs
  return [...html.matchAll(pattern)].map(([, part = '', caption = '', code = '']) => ({
    caption: readable(caption),
    part,
    code: readable(code),
  }))
}
