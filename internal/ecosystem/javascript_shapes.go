package ecosystem

// jsShapes returns what changes the meaning of a passing check in JavaScript.
func jsShapes() []Shape {
	return []Shape{
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
		{Kind: RunnerHook, Roles: []Role{None}, Has: []string{"Module . _load =", ") . _load =", ". _resolveFilename =",
			"require . cache [", "require . extensions ["},
			Detail: "changes from where modules are loaded"},
		{Kind: RunnerHook, Main: true, Roles: []Role{None}, Has: jsPatches(), With: jsAssert(), Detail: "changes how assertions fail"},
	}
}

// jsAssert returns patterns of imports of node's assertions.
func jsAssert() []string {
	return jsImports("assert", "node:assert", "assert/strict", "node:assert/strict")
}

// jsPatches returns patterns of assignments to assertions, whatever the name of their module. A comparison does not match.
func jsPatches() []string {
	patterns := []string{"assert . % = %", "assert [ % ] =", "Object . assign ( assert", "Object . defineProperty ( assert",
		"Object . defineProperties ( assert", "Object . setPrototypeOf ( assert", "Reflect . set ( assert", "Reflect . defineProperty ( assert",
		"AssertionError . prototype"}
	for _, name := range []string{"ok", "equal", "strictEqual", "deepEqual", "deepStrictEqual", "notEqual", "notStrictEqual", "notDeepEqual",
		"notDeepStrictEqual", "throws", "doesNotThrow", "rejects", "doesNotReject", "match", "doesNotMatch", "ifError", "fail"} {
		for _, member := range []string{". " + name, `[ "` + name + `" ]`} {
			patterns = append(patterns, member+" = (", member+" = function", member+" = async", member+" = % = >")
		}
	}
	return append(patterns, ". strictEqual = %", ". deepStrictEqual = %", ". deepEqual = %", ". notStrictEqual = %")
}
