import { describe, expect, test } from 'vitest'
import { formatItem, parseItem } from '../../src/cli/item.ts'

const aws = { kind: 'provider', namespace: 'hashicorp', type: 'aws' }
const vpc = { kind: 'module', namespace: 'terraform-aws-modules', name: 'vpc', targetSystem: 'aws' }

describe('what names an item', () => {
  test.each([
    [['hashicorp/aws'], aws],
    [['HashiCorp/AWS'], aws],
    [['hashicorp/aws', '5.100.0'], { ...aws, version: '5.100.0' }],
    [['hashicorp/aws@5.100.0'], { ...aws, version: '5.100.0' }],
    [['hashicorp/aws', '5.100.0', 'linux_amd64'], { ...aws, version: '5.100.0', platform: 'linux_amd64' }],
    [
      ['registry.terraform.io/hashicorp/aws 5.100.0 linux_amd64'],
      { ...aws, origin: 'registry.terraform.io', version: '5.100.0', platform: 'linux_amd64' },
    ],
    [['localhost:8443/hashicorp/aws'], { ...aws, origin: 'localhost:8443' }],
    [['terraform-aws-modules/vpc/aws', '5.1.0'], { ...vpc, version: '5.1.0' }],
    [['registry.terraform.io/terraform-aws-modules/vpc/aws'], { ...vpc, origin: 'registry.terraform.io' }],
  ])('%j', (words, item) => {
    expect(parseItem(words)).toEqual(item)
  })

  test.each([
    [['aws'], 'expected [HOST/]NAMESPACE/TYPE'],
    [['a/b/c/d/e'], 'expected [HOST/]NAMESPACE/TYPE'],
    [[''], 'expected [HOST/]NAMESPACE/TYPE'],
    [['hashicorp/a.b'], "a provider's type"],
    [['1.2.3.4/hashicorp/aws'], 'not a host name'],
    [['terraform-aws-modules/vpc/aws', '5.1.0', 'linux_amd64'], 'modules have no platforms'],
    [['hashicorp/aws', '1.0.0', 'linux_amd64', 'more'], '1 words more'],
  ])('%j is wrong use', (words, reason) => {
    expect(() => parseItem(words)).toThrow(
      expect.objectContaining({ exitCode: 2, message: expect.stringContaining(reason) }),
    )
  })

  test.each([
    'registry.terraform.io/hashicorp/aws 5.100.0 linux_amd64',
    'hashicorp/aws 5.100.0',
    'acme.example/a/b/c 1.0.0',
  ])('%s is printed as it was read', (text) => {
    expect(formatItem(parseItem([text]))).toBe(text)
  })
})
