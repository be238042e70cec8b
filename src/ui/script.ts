/**
 * The one script of the page: shows the copy buttons and makes them work. Where the browser has no clipboard for us
 * (plain http), the old way of a selection is taken.
 */
export const SCRIPT = `(() => {
  const status = document.getElementById('copied')
  const select = (code) => {
    const selection = getSelection()
    selection.selectAllChildren(code)
    return document.execCommand('copy')
  }
  const copy = async (code) => {
    try {
      await navigator.clipboard.writeText(code.textContent)
      return true
    } catch {
      return select(code)
    }
  }
  for (const figure of document.querySelectorAll('figure.code')) {
    const button = figure.querySelector('button')
    let timer
    button.hidden = false
    button.addEventListener('click', async () => {
      const done = await copy(figure.querySelector('code'))
      button.textContent = done ? 'Copied' : 'Selected'
      status.textContent = ''
      requestAnimationFrame(() => {
        status.textContent = done ? 'Copied to the clipboard.' : 'Selected: copy it with the keyboard.'
      })
      clearTimeout(timer)
      timer = setTimeout(() => {
        button.textContent = 'Copy'
        status.textContent = ''
      }, 2500)
    })
  }
})()`
