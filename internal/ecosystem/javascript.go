package ecosystem

import (
	"path"
	"strings"

	"github.com/ralph-pool/ralph/internal/ecosystem/lex"
)

func javascript() Ecosystem {
	return Ecosystem{
		Name:    "javascript",
		Markers: []string{"package.json", "deno.json", "deno.jsonc"},
		Tools: []Tool{
			{Name: "pnpm", Markers: []string{"pnpm-lock.yaml", "pnpm-workspace.yaml"}},
			{Name: "yarn", Markers: []string{"yarn.lock", ".yarnrc.yml"}},
			{Name: "bun", Markers: []string{"bun.lock", "bun.lockb"}},
			{Name: "deno", Markers: []string{"deno.json", "deno.jsonc", "deno.lock"}},
			{Name: "npm", Markers: []string{"package-lock.json", "npm-shrinkwrap.json"}},
			{Name: "npm"},
		},
		Groups: []Group{
			{Role: Environment, First: true, Files: []string{"node_modules/", ".pnp.cjs", ".pnp.loader.mjs", ".yarn/"},
				Reason: "is code that tests load in the place of installed packages"},
			{Role: Environment, First: true, Files: []string{".turbo/", ".nx/", ".parcel-cache/", ".next/", ".nyc_output/",
				".eslintcache"},
				Reason: "is a cache, whose results stand for checks"},
			{Role: Test, Files: each("*.test.%", "*.spec.%", "*-test.%", "*_test.%", "*-spec.%", "*_spec.%", "*.cy.%",
				"test-*.%", "test.%", "spec/**/*.%"), Reason: "holds JavaScript tests"},
			{Role: Test, Files: each("test/**/*.%", "tests/**/*.%"), Reason: "stands with JavaScript tests"},
			{Role: Test, Files: []string{"__tests__/", "__snapshots__/", "*.snap", "cypress/", "playwright/"},
				Reason: "belongs to JavaScript tests"},
			{Role: TestConfig, Files: []string{"jest.config.*", "jest.setup.*", "jest-*.config.*", "jest.*.config.*",
				"vitest.config.*", "vitest.workspace.*", "vitest.setup.*", "vite.config.*", ".mocharc*", "mocha.opts",
				"karma.conf.*", "ava.config.*", ".taprc", "cypress.config.*", "cypress.json", "playwright.config.*",
				"wdio.conf.*", "jasmine.json", ".nycrc*", ".c8rc*", "nyc.config.*", "setupTests.*", "setup-tests.*",
				"test-setup.*", "bunfig.toml", "__mocks__/", "wallaby.js", "stryker.conf*"},
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
				"Gruntfile.*"}, Reason: "says how JavaScript code is built"},
		},
		Runners: map[string][]string{
			"npm": {"package.json"}, "npx": {"package.json"}, "yarn": {"package.json"}, "pnpm": {"package.json"},
			"bun":  {"package.json"},
			"deno": {"deno.json", "deno.jsonc"}, "turbo": {"turbo.json"}, "nx": {"nx.json"},
			"gulp": {"gulpfile.js"}, "grunt": {"Gruntfile.js"},
		},
		Interpreters: []string{"node", "deno", "bun", "tsx", "ts-node"},
		Sources:      each("*.%"),
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
		Skips: jsMarks([]string{"xit (", "xtest (", "xdescribe (", "xcontext (", "xspecify (", "this . skip (", "t . skip (",
			"ctx . skip (", "t . todo (", "context . skip (", "skip : true", `skip : "`, "todo : true", `todo : "`,
			"ignore : true", "pending ("},
			"skip", "todo", "skipIf", "runIf", "fixme", "fails", "failing"),
		Focus: jsMarks([]string{"fit (", "fdescribe (", "fcontext (", "ftest (", "only : true"}, "only"),
		Assertions: []string{"expect (", "expect . %", "assert (", "assert . %", "t . assert . %", "t . is (",
			"t . deepEqual (", "t . equal (", "t . ok (", "t . throws (", "t . true (", "t . false (", ". should .", "should (",
			"expectTypeOf (", "assertEquals (", "assertThrows (", "fail (", "throw new"},
		Helpers: jsImports("node:test", "vitest", "@jest/globals", "chai", "bun:test", "ava", "tap", "uvu", "uvu/assert", "mocha",
			"@playwright/test", "expect", "@testing-library/jest-dom"),
		// Much code that is no test asserts.
		Perhaps:      jsImports("assert", "node:assert", "assert/strict", "node:assert/strict"),
		PerhapsFiles: each("*test*.%", "*assert*.%", "*expect*.%", "check.%", "checks.%", "check-*.%", "*-checks.%"),
		MainFiles:    append(each("bin/**/*.%", "scripts/**/*.%"), each("cli.%", "main.%")...),
		Shapes: []Shape{
			{Kind: EarlyExit, Has: []string{"process . exit ( 0 )", "process . exit ( )", "process . reallyExit (",
				"process . exitCode = 0", "process . abort (", "Deno . exit ( 0 )", "Deno . exit ( )"},
				Detail: "ends the process with success"},
			{Kind: EarlyExit, Main: true, Has: []string{"process . reallyExit (", "process . exit = ", `process . on ( "exit"`},
				Detail: "takes part in how the process ends"},
			{Kind: TestAware, Main: true, Roles: []Role{None}, Has: []string{". JEST_WORKER_ID", ". VITEST",
				". NODE_TEST_CONTEXT", `"JEST_WORKER_ID"`, `"VITEST"`, `"NODE_TEST_CONTEXT"`},
				Detail: "asks whether it runs under test"},
			{Kind: RunnerHook, Roles: []Role{TestConfig, Build, GateScript}, Has: []string{"passWithNoTests : true",
				"testPathIgnorePatterns", "testRunner :", "bail : 0", "globalThis . expect", "global . expect",
				"globalThis . it", "global . it", "globalThis . test", "global . test"},
				Detail: "changes which tests run or how they fail"},
		},
		Retests: []Retest{
			{Gate: "node --test", Line: "node --test {file}", Unbuilt: jsUnbuilt()},
			{Root: []string{"package.json"}, Line: "npm test -- {file}", Unbuilt: jsUnbuilt()},
		},
		Canary: jsCanary,
	}
}

// jsUnbuilt is what says that a module could not be loaded.
func jsUnbuilt() []string {
	return []string{"Cannot find module", "ERR_MODULE_NOT_FOUND", "does not provide an export named", "SyntaxError"}
}

// each returns the patterns with each ending of JavaScript in the place of %.
func each(patterns ...string) []string {
	var out []string
	for _, p := range patterns {
		for _, ending := range []string{"js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts"} {
			out = append(out, strings.ReplaceAll(p, "%", ending))
		}
	}
	return out
}

// jsImports returns what imports one of the modules.
func jsImports(names ...string) (patterns []string) {
	for _, name := range names {
		for _, by := range []string{"from", "import", "import (", "require ("} {
			patterns = append(patterns, by+` "`+name+`"`)
		}
	}
	return patterns
}

// jsMarks returns the patterns, and those of members with the names of what declares tests.
func jsMarks(patterns []string, names ...string) []string {
	for _, of := range []string{"it", "test", "describe", "suite", "context", "Deno . test", "specify"} {
		for _, name := range names {
			patterns = append(patterns, of+" . "+name, of+` [ "`+name+`" ]`, of+" . concurrent . "+name)
		}
	}
	return patterns
}

func jsCanary(p Place) []Canary {
	if p.Beside == "" {
		return nil // there is no telling where the runner looks
	}
	ending := path.Ext(p.Beside)
	name := like(p.Beside, []string{"test-", "test_"}, p.Suffix,
		".test"+ending, ".spec"+ending, "-test"+ending, "_test"+ending, "-spec"+ending, "_spec"+ending, ".cy"+ending, ending)
	s := source{p.Text, javascript().Syntax.Tokens(p.Text)}
	declare := "test"
	if s.has("it (") && !s.has("test (") {
		declare = "it"
	}
	head := ""
	for _, library := range []string{"node:test", "vitest", "@jest/globals", "bun:test", "ava", "tap"} {
		from := ` "` + library + `"`
		switch {
		case s.has("from"+from) && library == "ava":
			head = `import test from "ava";` + "\n\n"
		case s.has("from" + from):
			head = "import { " + declare + ` } from "` + library + `";` + "\n\n"
		case s.has("require (" + from):
			head = "const { " + declare + ` } = require("` + library + `");` + "\n\n"
		}
	}
	canaries := []Canary{{Path: name, Content: []byte(head + declare + `("` + p.Suffix + `", () => {
  throw new Error("` + p.message() + `");
});
`)}}
	// A runner whose tests were replaced still loads its files.
	loaded := `throw new Error("` + p.message() + "\");\n"
	if strings.Contains(ending, "ts") {
		loaded += "\nexport {};\n"
	}
	return append(canaries, Canary{Path: strings.Replace(name, p.Suffix, p.Suffix+"l", 1),
		Content: []byte(loaded)})
}
