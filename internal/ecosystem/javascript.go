package ecosystem

import (
	"bytes"
	"encoding/json"
	"path"
	"strings"

	"github.com/ralph-pool/ralph/internal/ecosystem/lex"
	"github.com/ralph-pool/ralph/internal/pattern"
)

func javascript() Ecosystem {
	return Ecosystem{
		Name:       "javascript",
		Markers:    []string{"package.json", "deno.json", "deno.jsonc"},
		Tools:      jsTools(),
		Registries: []Registry{{File: ".npmrc", Keys: []string{"registry"}}},
		Asked:      []string{"NO_UPDATE_NOTIFIER=1"},
		Bare:       []string{"npm_config_userconfig=/nonexistent/user", "npm_config_globalconfig=/nonexistent/global"},
		Checkers: strings.Fields("jest vitest mocha karma ava tap cypress playwright wdio jasmine " +
			"nyc c8 stryker wallaby eslint prettier biome stylelint jshint tslint"),
		Groups: []Group{
			{Role: Environment, First: true, Files: []string{"node_modules/", ".pnp.cjs", ".pnp.loader.mjs", ".yarn/"},
				Reason: "is code that tests load in the place of installed packages"},
			{Role: Environment, First: true, Files: []string{".turbo/", ".nx/", ".parcel-cache/", ".next/", ".nyc_output/",
				".eslintcache"},
				Reason: "is a cache, whose results stand for checks"},
			{Role: Test, Files: perExtension("*.test.%", "*.spec.%", "*-test.%", "*_test.%", "*-spec.%", "*_spec.%", "*.cy.%",
				"test-*.%", "test.%", "spec/**/*.%"), Reason: "holds JavaScript tests"},
			{Role: Test, Files: perExtension("test/**/*.%", "tests/**/*.%"), Reason: "stands with JavaScript tests"},
			{Role: Test, Files: []string{"__tests__/", "__snapshots__/", "*.snap", "cypress/", "playwright/"},
				Reason: "belongs to JavaScript tests"},
			{Role: TestConfig, Files: []string{"jest.config.*", "jest.setup.*", "jest-*.config.*", "jest.*.config.*",
				"vitest.config.*", "vitest.workspace.*", "vitest.setup.*", "vite.config.*", ".mocharc*", "mocha.opts",
				"karma.conf.*", "ava.config.*", ".taprc", "cypress.config.*", "cypress.json", "playwright.config.*",
				"wdio.conf.*", "jasmine.json", ".nycrc*", ".c8rc*", "nyc.config.*", "setupTests.*", "setup-tests.*",
				"test-setup.*", "bunfig.toml", "__mocks__/", "wallaby.js", "stryker.conf*", "testem.*"},
				Reason: "configures JavaScript test runners"},
			{Role: TestConfig, Files: []string{".eslintrc*", "eslint.config.*", ".eslintignore", ".prettierrc*",
				"prettier.config.*", ".prettierignore", "biome.json", "biome.jsonc", ".stylelintrc*", ".jshintrc",
				"tslint.json"}, Reason: "configures a check of JavaScript code"},
			{Role: Environment, Files: []string{".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".nvmrc", ".node-version"},
				Reason: "changes how JavaScript tools run"},
			{Role: Build, Files: []string{"package.json", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock",
				"pnpm-lock.yaml", "pnpm-workspace.yaml", "bun.lock", "bun.lockb", "deno.json", "deno.jsonc", "deno.lock",
				"tsconfig.json", "tsconfig.*.json", "jsconfig.json", "lerna.json", "nx.json", "project.json", "turbo.json",
				"babel.config.*", ".babelrc*", ".swcrc", "webpack.config.*", "rollup.config.*", "esbuild.*", "gulpfile.*",
				"Gruntfile.*", "angular.json", ".tsnoderc", "/node.config.json"}, Reason: "says how JavaScript code is built"},
			{Role: Build, Files: perExtension("/*.config.%"), Reason: "configures a JavaScript tool"},
		},
		Runners: map[string][]string{
			"npm": {"package.json"}, "npx": {"package.json"}, "yarn": {"package.json"}, "pnpm": {"package.json"},
			"bun":  {"package.json"},
			"deno": {"deno.json", "deno.jsonc"}, "turbo": {"turbo.json"}, "nx": {"nx.json"},
			"gulp": {"gulpfile.js"}, "grunt": {"Gruntfile.js"},
		},
		Shadows: Shadows{Standard: strings.Fields(nodeStandard)},
		// Only settings make a file of the repository answer to the name of a package.
		Imports: Imports{
			Read: jsImportsOf, Index: "index",
			Endings: []string{".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts", ".json"},
		},
		Interpreters: []string{"node", "deno", "bun", "tsx", "ts-node"},
		Sources:      perExtension("*.%"),
		Syntax: lex.Syntax{Templates: true, Regexps: true, Spans: []lex.Span{
			{Open: "//", Close: "\n", Comment: true},
			{Open: "/*", Close: "*/", Comment: true, Lines: true},
			{Open: `"`, Close: `"`, Escape: true},
			{Open: "'", Close: "'", Escape: true},
		}},
		Tests: []string{`it ( ="`, `test ( ="`, `specify ( ="`, `xit ( ="`, `fit ( ="`, `xtest ( ="`, `ftest ( ="`,
			`xspecify ( ="`, `it . % ( ="`, `test . only ( ="`, `test . skip ( ="`, `test . todo ( ="`, `test . fixme ( ="`,
			`test . fails ( ="`, `test . failing ( ="`, `test . concurrent ( ="`, `test . serial ( ="`, "it . each",
			"test . each", "it . for (", "test . for (", "test . skipIf (", "test . runIf (", `t . test ( ="`, `Deno . test (`,
			`it [ " ] ( ="`, `test [ " ] ( ="`, "it (", "test ("},
		Skips: memberPatterns([]string{"xit (", "xtest (", "xdescribe (", "xcontext (", "xspecify (", "this . skip (", "t . skip (",
			"ctx . skip (", "t . todo (", "context . skip (", "skip : true", `skip : "`, "todo : true", `todo : "`,
			"ignore : true", "pending ("},
			"skip", "todo", "skipIf", "runIf", "fixme", "fails", "failing"),
		Focus: memberPatterns([]string{"fit (", "fdescribe (", "fcontext (", "ftest (", "only : true"}, "only"),
		Assertions: []string{"expect (", "expect . %", "assert (", "assert . %", "t . assert . %", "t . is (",
			"t . deepEqual (", "t . equal (", "t . ok (", "t . throws (", "t . true (", "t . false (", ". should .", "should (",
			"expectTypeOf (", "assertEquals (", "assertThrows (", "fail (", "throw new"},
		Helpers: jsImports("node:test", "vitest", "@jest/globals", "chai", "bun:test", "ava", "tap", "uvu", "uvu/assert", "mocha",
			"@playwright/test", "expect", "@testing-library/jest-dom"),
		// Much code that is not a test contains assertions.
		Perhaps:      jsAssert(),
		PerhapsFiles: perExtension("*test*.%", "*assert*.%", "*expect*.%", "check.%", "checks.%", "check-*.%", "*-checks.%"),
		MainFiles:    append(perExtension("bin/**/*.%", "scripts/**/*.%"), perExtension("cli.%", "main.%")...),
		Shapes:       jsShapes(),
		Retests: []Retest{
			{Gate: "node --test", Line: "node --test {file}", Unbuilt: jsUnbuilt(), Unstarted: jsTestsNotStarted},
			{Root: []string{"package.json"}, Fits: jsHasTestScript, Line: "npm test -- {file}", Unbuilt: jsUnbuilt(), Unstarted: jsTestsNotStarted},
		},
		Canary: jsCanary,
	}
}

// nodeStandard lists the modules of Node.js.
const nodeStandard = "assert async_hooks buffer child_process cluster console constants crypto dgram diagnostics_channel dns domain " +
	"events fs http http2 https inspector module net os path perf_hooks process punycode querystring readline repl stream " +
	"string_decoder sys timers tls trace_events tty url util v8 vm wasi worker_threads zlib"

// jsUntested is a text in the test script that `npm init` writes. That script always fails.
const jsUntested = "Error: no test specified"

// jsHasTestScript reports whether a package.json has a test script. In a monorepo only the one of the top folder may have it.
func jsHasTestScript(text []byte) bool {
	var project struct{ Scripts map[string]any }
	return json.Unmarshal(text, &project) == nil && project.Scripts["test"] != nil && !bytes.Contains(text, []byte(jsUntested))
}

// jsTestsNotStarted matches the errors of node for a test runner that is not installed.
var jsTestsNotStarted = pattern.Lazy(`Cannot find (?:module|package) '(?:[^'\n]*/node_modules/)?(?:jest|vitest|mocha|ava|tap|jasmine|tape)[/']`)

// jsUnbuilt returns texts of the output that show that a module could not be loaded.
func jsUnbuilt() []string {
	return []string{"Cannot find module", "ERR_MODULE_NOT_FOUND", "does not provide an export named", "SyntaxError"}
}

// perExtension returns the patterns once for each file extension of JavaScript, which replaces %.
func perExtension(patterns ...string) []string {
	var out []string
	for _, p := range patterns {
		for _, ending := range []string{"js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts"} {
			out = append(out, strings.ReplaceAll(p, "%", ending))
		}
	}
	return out
}

// jsImports returns patterns that match an import of one of the modules.
func jsImports(names ...string) (patterns []string) {
	for _, name := range names {
		for _, by := range []string{"from", "import", "import (", "require ("} {
			patterns = append(patterns, by+` "`+name+`"`)
		}
	}
	return patterns
}

// memberPatterns returns the patterns, and patterns of the named members of the functions that declare tests: it.skip, test.only.
func memberPatterns(patterns []string, names ...string) []string {
	for _, of := range []string{"it", "test", "describe", "suite", "context", "Deno . test", "specify"} {
		for _, name := range names {
			patterns = append(patterns, of+" . "+name, of+` [ "`+name+`" ]`, of+" . concurrent . "+name)
		}
	}
	return patterns
}

func jsCanary(p Site) []Canary {
	if p.Beside == "" {
		return nil // unknown where the runner looks for tests
	}
	ending := path.Ext(p.Beside)
	name := siblingName(p.Beside, []string{"test-", "test_"}, p.Suffix,
		".test"+ending, ".spec"+ending, "-test"+ending, "_test"+ending, "-spec"+ending, "_spec"+ending, ".cy"+ending, ending)
	s := javascript().Syntax.Read(p.Text)
	declare := "test"
	if s.Has("it (") && !s.Has("test (") {
		declare = "it"
	}
	imports, wrong := jsAssertions(s)
	names := declare
	if strings.HasPrefix(strings.Join(wrong, ""), "expect") {
		names += ", expect"
	}
	head := ""
	for _, library := range []string{"node:test", "vitest", "@jest/globals", "@playwright/test", "bun:test", "ava", "tap"} {
		from := ` "` + library + `"`
		switch {
		case s.Has("from"+from) && library == "ava":
			head = `import test from "ava";` + "\n\n"
		case s.Has("from" + from):
			head = "import { " + names + ` } from "` + library + `";` + "\n\n"
		case s.Has("require (" + from):
			head = "const { " + names + ` } = require("` + library + `");` + "\n\n"
		}
	}
	fails := `throw new Error("` + p.Message() + `");`
	body := "  " + fails + "\n"
	if len(wrong) > 0 {
		body = "  for (const wrong of [\n    () => " + strings.Join(wrong, ",\n    () => ") + `,
  ]) {
    try { wrong(); } catch { continue; }
    return; // it was replaced
  }
` + body
	}
	canaries := []Canary{{Path: name, Content: []byte(imports + head + declare + `("` + p.Suffix + `", () => {
` + body + "});\n")}}
	// If a runner's test functions were replaced, it still loads the files, so a second canary fails when it is loaded.
	loaded := fails + "\n"
	if strings.Contains(ending, "ts") {
		loaded += "\nexport {};\n"
	}
	return append(canaries, Canary{Path: strings.Replace(name, p.Suffix, p.Suffix+"l", 1),
		Content: []byte(loaded)})
}

// jsLocal finds the modules of the project that a file imports.
var jsLocal = pattern.Lazy(`\b(?:from|import|require)\s*\(?\s*['"](\.{1,2}/[^'"\n]+)['"]`)

// jsAssertions returns wrong assertions in the libraries that a test uses, and the imports for them. Modules of the project
// are imported first: most runners isolate test files from each other, so assertions that a module replaces are replaced
// only in files that load it.
func jsAssertions(s lex.Source) (imports string, wrong []string) {
	modules := s.Has("import % ", "import {", "import *", `import "`)
	load := func(name, module string) {
		switch {
		case modules && name != "":
			imports += "import " + name + ` from "` + module + "\";\n"
		case modules:
			imports += `import "` + module + "\";\n"
		case name != "":
			imports += "const " + name + ` = require("` + module + "\");\n"
		default:
			imports += `require("` + module + "\");\n"
		}
	}
	if !s.Has(". mock (", ". doMock (") { // a module may not load without its mocks
		local := map[string]bool{}
		for _, m := range jsLocal().FindAllSubmatch(s.Text, -1) {
			if module := string(m[1]); !local[module] {
				local[module] = true
				load("", module)
			}
		}
	}
	if s.Has("expect (") && !s.Has(jsImports("chai")...) && !s.Has(". to . %") {
		wrong = append(wrong, "expect(1).toBe(2)", "expect(1).not.toBe(1)", "expect(1).toEqual(2)", "expect([1]).toEqual([2])",
			"expect({ a: 1 }).toEqual({ a: 2 })", "expect([1]).toStrictEqual([2])", "expect(false).toBeTruthy()",
			"expect(true).toBeFalsy()", "expect(1).toBeNull()", "expect(1).toBeUndefined()",
			"expect(1).toBeGreaterThan(2)", `expect("a").toContain("b")`, `expect("a").toMatch(/b/)`, "expect(() => {}).toThrow()")
	}
	for _, module := range []string{"node:assert", "assert", "node:assert/strict", "assert/strict"} {
		if !s.Has(jsImports(module)...) {
			continue
		}
		if modules && s.Has("import * as % from \""+module+`"`) {
			load("* as checked", module)
		} else {
			load("checked", module)
		}
		wrong = append(wrong, "checked.ok(false)", "checked.equal(1, 2)", "checked.notEqual(1, 1)", "checked.strictEqual(1, 2)",
			"checked.notStrictEqual(1, 1)", "checked.deepEqual([1], [2])", "checked.deepStrictEqual([1], [2])",
			`checked.match("a", /b/)`, "checked.throws(() => {})", "checked.fail()")
		break
	}
	return imports, wrong
}
