import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { readConfiguration } from '../../src/hcl/hcl-reader.ts'
import { createWorkspace, terraformAvailable } from '../e2e/terraform-cli.ts'

/** What begins a template; the linter takes it for a mistake in a plain string. */
const T = ['$', '{'].join('')

/** What configurations of people have in them, and a parser may stumble over. */
const TEXTS: Readonly<Record<string, string>> = {
  'heredocs with templates and quotes': `locals {\n  a = <<EOT\nhello ${T}var.x} "quoted" %{ if true }yes%{ endif }\n  {{ }}\nEOT\n  b = <<-END\n    x\n    END\n}\n`,
  'a heredoc of JSON': `resource "a_b" "c" {\n  policy = <<POLICY\n{\n  "Version": "2012", "R": "${T}aws.x.arn}/*"\n}\nPOLICY\n}\n`,
  'an empty heredoc': 'locals {\n  a = <<EOT\nEOT\n}\n',
  'a heredoc in a call': 'locals {\n  a = f(<<EOT\nx\nEOT\n  , 1)\n}\n',
  'heredocs in a list': 'locals {\n  a = [<<EOT\nx\nEOT\n  , <<B\ny\nB\n  ]\n}\n',
  'for expressions': `locals {\n  a = [for k, v in var.m : "${T}k}=${T}v}" if v != null]\n  b = { for k in var.l : k => k... }\n}\n`,
  'splats and indexes':
    'locals {\n  a = aws_x.y[*].id\n  b = aws_x.y.*.id\n  c = aws_x.y.0.id\n  d = a[0].b["c"].d\n}\n',
  'conditions over lines':
    'locals {\n  a = (\n    var.x\n    ? 1\n    : 2\n  )\n  b = !var.x && var.y || var.z == 1 ? "a" : "b"\n}\n',
  'functions of providers, spread arguments':
    'locals {\n  a = provider::aws::arn_parse("x")\n  b = merge([for x in y : x]...)\n  c = f(\n    1,\n    2,\n  )\n}\n',
  'comments everywhere':
    '# a\n/* b */ locals { # c\n  a = 1 // d\n  b = [ # e\n    1, # f\n    # g\n    2 /* h */,\n  ] # i\n  c = { # j\n    # k\n    x = 1 # l\n  }\n}\n// end',
  'quotes in templates in quotes': `locals {\n  a = "${T}lookup(var.x, "k", "d")}-${T}"${T}var.y}"}"\n  b = "a\\"b${T}replace(var.x, "\\"", "")}"\n}\n`,
  'escapes, lone dollars and percents': `locals {\n  a = "$${T}x} %%{y} $x % $ \\\\ \\n"\n  b = "$"\n  c = "a$"\n  d = "%"\n  e = "100%"\n}\n`,
  'objects of all kinds': `locals {\n  a = { "x" : 1, y = 2, (var.z) = 3, "a-${T}b}" = 4 }\n  b = {\n    x = 1,\n    y = 2\n  }\n  c = {}\n  d = []\n}\n`,
  'letters of all scripts': 'locals {\n  größe = "日本"\n  a-b = 1\n  _x = 2\n}\n',
  CRLF: 'locals {\r\n  a = 1\r\n  b = <<EOT\r\nx\r\nEOT\r\n}\r\n',
  'blocks on one line': 'variable "a" {}\nvariable "b" { default = 1 }\noutput "c" { value = [1, 2] }\nlocals {}\n',
  'labels without quotes': 'resource aws_x y {\n}\nvariable x {\n  type = string\n}\n',
  'dynamic blocks':
    'resource "a_b" "c" {\n  dynamic "x" {\n    for_each = var.y\n    content {\n      z = x.value["q"]\n    }\n  }\n}\n',
  'template directives': `locals {\n  a = "%{ for x in var.l ~}${T}x}%{ endfor ~}"\n  b = "%{ if var.a }x%{ else }y%{ endif }"\n}\n`,
  types: 'variable "x" {\n  type = object({\n    a = optional(list(string), ["x"])\n    b = map(any)\n  })\n}\n',
  'operators over lines': 'locals {\n  a = [\n    1 +\n    2,\n    true &&\n    false\n  ]\n  b = (1\n    + 2)\n}\n',
  'no newline at the end': 'locals {\n  a = 1\n}',
  tabs: 'locals\t{\n\ta\t=\t1\n}\n',
  'trimmed templates': `locals {\n  a = "${T}~ var.x ~}"\n}\n`,
  'indexes of calls and literals':
    'locals {\n  a = f(x)[0].y\n  b = [1,2][0]\n  c = {a=1}.a\n  d = (x).y\n  e = "a"[0]\n}\n',
  settings: 'terraform {\n  required_version = ">= 1.0"\n  backend "s3" {\n    bucket = "x"\n  }\n  cloud {\n  }\n}\n',
  'an object in a condition': 'locals {\n  x = var.a == "" ? null : {\n    b = 1\n  }\n}\n',
  'a call over lines':
    'locals {\n  x = templatefile("a", {\n    b = 1\n    c = [for i in y : {\n      d = i\n    }]\n  })\n}\n',
  'an indented end': 'locals {\n  a = <<EOT\nx\n    EOT\n}\n',
  'a heredoc with lone dollars': `locals {\n  a = <<EOT\n$${T}x} $ % \\n "\n$\nEOT\n}\n`,
  'a script': `locals {\n  user_data = <<-EOF\n    #!/bin/bash\n    echo "$(date)" > ${T}var.f}\n    for i in {1..3}; do echo $i; done\n  EOF\n}\n`,
}

describe('the native syntax', () => {
  it.each(Object.keys(TEXTS))('is read where it has %s, and what follows it too', async (name) => {
    const text = `${TEXTS[name] ?? ''}\nprovider "last" {}\n`
    const { providers, problems } = await readConfiguration(new Map([['main.tf', text]]))
    expect(problems).toEqual([])
    expect(providers.map(({ source }) => source.type)).toContain('last')
  })

  it.skipIf(terraformAvailable() === undefined)('is what the real terraform takes', async () => {
    await using terraform = await createWorkspace({ providers: {}, cliConfig: '' })
    const texts = Object.values(TEXTS)
    for (const [index, text] of texts.entries()) await writeFile(join(terraform.dir, `${index}.tf`), text)
    const run = await terraform.run(['fmt', '-list=false'])
    expect(run.code, run.output).toBe(0)
  })
})
