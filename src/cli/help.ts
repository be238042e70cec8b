import { Help, type HelpConfiguration } from 'commander'

/** How `--help` is laid out: subcommands by their name alone, and no defaults that say nothing. */
export const HELP_LAYOUT: HelpConfiguration = {
  subcommandTerm: (command) => command.name(),
  optionDescription: (option) => {
    const { defaultValue } = option
    const saysNothing = defaultValue === false || (Array.isArray(defaultValue) && defaultValue.length === 0)
    return saysNothing ? option.description : new Help().optionDescription(option)
  },
}
