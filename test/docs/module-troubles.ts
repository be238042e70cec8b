import { askModule, type ModuleCall, moduleBase } from '../e2e/module-door.ts'
import { registryBase } from '../e2e/registry-door.ts'
import { hostConfig, networkMirrorConfig } from '../e2e/terraform-cli.ts'
import { GitRepository } from '../upstream/module-source/git-source-fixture.ts'
import { HOST, MODULE_FILES, SEALED_MODULE, type Stage, type Trouble } from './trouble-stage.ts'

/** What goes wrong with modules. The one that takes longest is the first: others are run beside it. */
export const MODULE_TROUBLES: Readonly<Record<string, Trouble>> = {
  'module-pending': (stage, source) => {
    const location = '/files/huge.zip'
    stage.origin.fault({ when: ({ url }) => url === location }, { hang: true })
    return { module: publish(stage, source, location) }
  },
  'module-source-refused': (stage, source) => ({
    module: publish(stage, source, 's3::https://s3.amazonaws.com/modules/net.zip'),
  }),
  'module-private-git': (stage, source) => {
    stage.origin.serveGit('acme/private', { path: '/nowhere', login: 'x-access-token:a-token' })
    return { module: publish(stage, source, `git::https://${HOST}/git/acme/private.git?ref=v1.0.0`) }
  },
  'module-tag-moved': async (stage, source) => {
    const repository = stage.opened.use(await GitRepository.make())
    stage.origin.serveGit('acme/moved', repository)
    await repository.commit({ 'main.tf': '# before\n' }, { tag: 'v1.0.0' })
    const module = publish(stage, source, `git::https://${HOST}/git/acme/moved.git?ref=v1.0.0`)
    await askModule(stage.plain, module.source, '1.0.0')
    await repository.commit({ 'main.tf': '# after\n' })
    repository.git('tag', '--force', 'v1.0.0')
    return { module, cliConfig: hostConfig(HOST, { 'modules.v1': moduleBase(stage.plain.url, HOST) }) }
  },
  'module-not-found': (_, source) => ({ module: { source: `${source}/aws` } }),
  'module-version-not-found': (stage, source) => ({
    module: { ...publish(stage, source, MODULE_FILES), version: '2.0.0' },
  }),
  'module-sealed': ({ sealed }) => ({ module: { source: SEALED_MODULE, version: '1.1.0' }, url: sealed.baseUrl }),
  'modules-not-offered': ({ mirror }, source) => ({
    module: { source: `${source}/aws` },
    cliConfig:
      networkMirrorConfig(mirror.baseUrl) + hostConfig(HOST, { 'providers.v1': registryBase(mirror.url, HOST) }),
  }),
  'providers-not-offered': ({ mirror }) => ({
    cliConfig: hostConfig(HOST, { 'modules.v1': moduleBase(mirror.url, HOST) }),
  }),
}

/** Publishes version 1.0.0 of the module of a trouble, and calls it. */
function publish({ origin }: Stage, source: string, location: string): ModuleCall {
  const module = `${source}/aws`
  origin.publishModule({ module, version: '1.0.0', location })
  return { source: module, version: '1.0.0' }
}
