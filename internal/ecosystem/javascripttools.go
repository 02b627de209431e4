package ecosystem

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/pattern"
)

// jsProgram installs a program from npm in an image.
func jsProgram(name string) Image {
	return Image{Lines: []string{"npm install --global " + name + " && npm cache clean --force"}}
}

// jsVersion matches a version in package.json. No other text may become part of a shell line.
var jsVersion = pattern.Lazy(`^\d+(\.\d+){0,2}(-[0-9A-Za-z.-]+)?$`)

// pinnedProgram is an npm program in the version that packageManager pins.
func pinnedProgram(name string) Image {
	i := jsProgram(name)
	i.PinFile, i.Pinned = "package.json", func(text []byte) []string {
		var project struct{ PackageManager string }
		if json.Unmarshal(text, &project) != nil {
			return nil
		}
		version, is := strings.CutPrefix(project.PackageManager, name+"@")
		version, _, _ = strings.Cut(version, "+") // npm accepts no digest
		if !is || !jsVersion().MatchString(version) {
			return nil
		}
		return jsProgram(name + "@" + version).Lines
	}
	return i
}

func jsTools() []Tool {
	registry := func(program string) Ask {
		return Ask{Argv: []string{program, "config", "get", "registry"}, Name: "npm_config_registry"}
	}
	// Projects in containers need no pnpm on this host. It reads npm's settings, so npm can answer instead.
	npm := registry("npm")
	npm.Fallback = true
	yarns := jsFetches("yarn.lock .yarnrc .yarnrc.yml .yarn/", "yarn install", "yarn") // a setup line does not show which yarn it runs
	return []Tool{
		{
			Name: "pnpm", Markers: []string{"pnpm-lock.yaml", "pnpm-workspace.yaml"}, Named: jsManager("pnpm@"),
			Setup: []Line{
				{If: fileClue("pnpm-lock.yaml"), Shell: "pnpm install --frozen-lockfile"},
				{Shell: "pnpm install --no-lockfile"},
			},
			Gate:   jsScript("pnpm", "pnpm test", "pnpm -r test"),
			Hosts:  []Ask{registry("pnpm"), npm},
			Caches: []string{".local/share/pnpm/store"},
			Image:  pinnedProgram("pnpm"),
			Reads:  jsFetches("pnpm-lock.yaml pnpm-workspace.yaml", "pnpm install"),
		},
		{
			Name: "yarn-classic", Markers: []string{"yarn.lock"}, Named: jsManager("yarn@1."),
			Unless: []Clue{{Files: []string{".yarnrc.yml"}}, {
				Files: []string{"yarn.lock", "package.json"},
				Words: []string{"\n__metadata:", `"yarn@2.`, `"yarn@3.`, `"yarn@4.`, `"yarn@5.`},
			}},
			Setup: []Line{
				{If: fileClue("yarn.lock"), Shell: "yarn install --frozen-lockfile --non-interactive"},
				{Shell: "yarn install --no-lockfile --non-interactive"},
			},
			Gate:   jsScript("yarn", "yarn test", ""),
			Hosts:  []Ask{registry("yarn")},
			Caches: []string{".cache/yarn"},
			Reads:  yarns,
			Lacks:  sameReason("the image has it", NoImage),
		},
		{
			Name: "yarn", Markers: []string{"yarn.lock", ".yarnrc.yml"}, Named: jsManager("yarn@"),
			// It runs no script of a project without a lock file.
			Setup: []Line{{If: fileClue("yarn.lock"), Shell: "yarn install --immutable"}, {Shell: "yarn install --no-immutable"}},
			Lock:  []string{"yarn.lock"}, MakeLock: "yarn install",
			Gate: jsScript("yarn", "yarn test", ""),
			Hosts: []Ask{{
				Argv: []string{"yarn", "config", "get", "npmRegistryServer"},
				Name: "YARN_NPM_REGISTRY_SERVER",
			}},
			Caches: []string{".yarn/berry/cache"},
			Reads:  yarns,
			Image:  jsProgram("--force @yarnpkg/cli-dist"), // replaces the image's classic yarn
		},
		{
			Name: "bun", Markers: []string{"bun.lock", "bun.lockb"}, Named: jsManager("bun@"),
			Setup:  []Line{{If: fileClue("bun.lock", "bun.lockb"), Shell: "bun install --frozen-lockfile"}, {Shell: "bun install --no-save"}},
			Gate:   append(jsScript("bun", "bun run test", "")[:2], Line{Shell: "bun test"}), // without a test script: bun's own runner
			Hosts:  []Ask{registry("npm")},
			Caches: []string{".bun/install/cache"},
			Image:  jsProgram("bun"),
			Reads:  jsFetches("bun.lock bun.lockb bunfig.toml", "bun install"),
		},
		{
			Name: "deno", Markers: []string{"deno.json", "deno.jsonc", "deno.lock"},
			Setup: []Line{{If: fileClue("deno.lock"), Shell: "deno install --frozen"}, {Shell: "deno install --no-lock"}},
			Gate: []Line{{ // the task gives the tests their permissions
				If:    []Clue{{Files: []string{"deno.json", "deno.jsonc"}, Words: []string{`"test": "`, `"test":"`}}},
				Shell: "deno task test",
			}, {Shell: "deno test"}},
			Hosts:  []Ask{registry("npm")},
			Caches: []string{".cache/deno"},
			Image:  jsProgram("deno"),
			Lacks:  sameReason("any file of the code may name what it imports", NoReads),
		},
		{
			Name: "npm", Markers: []string{"package-lock.json", "npm-shrinkwrap.json"}, Usual: true,
			Setup: []Line{
				{If: fileClue("package-lock.json", "npm-shrinkwrap.json"), Shell: "npm ci --no-audit --no-fund"},
				{
					If:    inPackage(`"dependencies"`, `"devDependencies"`, `"workspaces"`),
					Shell: "npm install --no-package-lock --no-audit --no-fund",
				},
			},
			Gate:   jsScript("npm", "npm test", "npm test --workspaces --if-present"),
			Hosts:  []Ask{registry("npm")},
			Caches: []string{".npm/_cacache"},
			Reads:  jsFetches("package-lock.json npm-shrinkwrap.json", "npm ci", "npm install"),
			Lacks:  sameReason("the image has it", NoImage),
		},
	}
}

// jsManager is the clue that packageManager names a tool in such a version.
func jsManager(version string) []Clue {
	return inPackage(`"packageManager":"`+version, `"packageManager": "`+version)
}

// inPackage is the clue that package.json contains one of the words.
func inPackage(words ...string) []Clue {
	return []Clue{{Files: []string{"package.json"}, Words: words}}
}

// jsScript returns the gate of a project with a test script, or (each) with test scripts in its workspaces. It also builds
// if git ignores the output: this checks the types of TypeScript, and tests may need the build.
func jsScript(program, test, each string) []Line {
	build := program + " run build"
	var ignored, packages []string
	for _, dir := range []string{"dist", "build", "lib", "out", ".next"} {
		ignored = append(ignored, "\n"+dir, "\n/"+dir)
	}
	for _, dir := range []string{"packages", "apps", "libs", "services", "modules"} {
		packages = append(packages, dir+"/*/package.json")
	}
	builds := append(inPackage(`"build":"`, `"build": "`), Clue{ // a string value: programs may have objects named "build"
		Files: []string{".gitignore"}, Words: ignored})
	tests, untested := inPackage(`"test":`, `"test" :`), inPackage(jsUntested)
	members := Clue{Files: packages, Words: tests[0].Words}
	lines := []Line{
		{If: slices.Concat(tests, builds), Unless: untested, Shell: build + " && " + test},
		{If: tests, Unless: untested, Shell: test},
	}
	if each != "" {
		workspaces := Clue{Files: []string{"package.json", "pnpm-workspace.yaml"}, Words: []string{`"workspaces"`, "packages:"}}
		none := []Clue{{Files: packages, Words: untested[0].Words}}
		lines = append(lines, Line{If: append([]Clue{workspaces, members}, builds...), Unless: none, Shell: build + " && " + each},
			Line{If: []Clue{workspaces, members}, Unless: none, Shell: each})
	}
	return append(lines, Line{If: builds, Shell: build})
}

// jsFetches describes the reads of commands that install packages, with these files of their tool.
func jsFetches(files string, commands ...string) []Fetch {
	return []Fetch{{Commands: commands, Reads: Reads{
		Files: append(strings.Fields(files), "package.json", ".npmrc", "patches/"),
		Unless: []string{`"preinstall"`, `"install"`, `"postinstall"`, `"preprepare"`, `"prepare"`, `"postprepare"`, `"prepublish"`,
			`"file:`, `"pnpmfile`},
	}}}
}
