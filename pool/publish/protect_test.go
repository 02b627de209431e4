package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/diff"
)

// Commits that are too large to read are blocked; any other failure stays an error.
func TestUnreadIsBlocked(t *testing.T) {
	t.Parallel()
	found, err := tooLargeFinding(fmt.Errorf("read what commits change: %w", diff.ErrTooMuch))
	if err != nil || len(found) != 1 || !strings.Contains(found[0], "cannot be checked") {
		t.Errorf("found %q, error %v", found, err)
	}
	broken := errors.New("broken")
	if found, err := tooLargeFinding(broken); !errors.Is(err, broken) || found != nil {
		t.Errorf("found %q, error %v", found, err)
	}
}

func TestProtectedPaths(t *testing.T) {
	t.Parallel()
	p := newGuard(ProtectedPaths(), nil)
	for _, file := range []string{
		"AGENTS.md", "AGENTS.override.md", "services/api/AGENTS.md", "agents.MD", "CLAUDE.md", "web/CLAUDE.md", "CLAUDE.local.md", "GEMINI.md",
		"docs/GEMINI.md", ".github/copilot-instructions.md", ".github/instructions/go.instructions.md", ".github/prompts/x.prompt.md",
		".github/agents/x.agent.md", ".github/chatmodes/x.chatmode.md", ".cursor/rules/a.mdc", "web/.cursor/rules/a.mdc", "web/.cursorrules", ".windsurfrules",
		".windsurf/rules/a.md", ".clinerules", ".clinerules/a.md", ".claude/settings.json", "web/.claude/skills/x/SKILL.md", "web/.codex/config.toml",
		".agents/skills/x/SKILL.md", ".opencode/agent/x.md", "web/opencode.json", "opencode.jsonc", "web/.mcp.json", ".github/workflows/ci.yml",
		"web/.vscode/tasks.json", "CODEOWNERS", "docs/CODEOWNERS", ".junie/guidelines.md", ".kiro/steering/a.md", ".amazonq/rules/a.md", ".aider.conf.yml",
		"WARP.md", "CRUSH.md", ".goosehints", "web/.run/a.run.xml", ".tekton/a.yaml", ".openhands/setup.sh", ".idx/dev.nix", ".dir-locals-2.el", "sub/.Rprofile",
		".gitpod.yml", ".readthedocs.yaml", "mise.local.toml", ".mise.local.toml", "web/.config/mise/config.toml", ".mise/config.toml", "buildspec.yml", ".build.yml",
		".builds/test.yml", ".zuul.yaml", "zuul.d/jobs.yaml",
		".devcontainer.json", ".woodpecker.yaml", ".drone.yaml", "azure-pipelines.yaml", ".appveyor.yml", ".cirrus.yml", ".semaphore/a.yml", "cloudbuild.yaml",
		"bitrise.yml", ".teamcity/settings.kts", "netlify.toml", "vercel.json", ".mergify.yml", "renovate.json", ".renovaterc", "lefthook.yaml", ".lefthook.yml",
		"lefthook-local.yml", ".pre-commit-config.yml", ".overcommit.yml", ".idea/runConfigurations/a.xml", "a.code-workspace", ".zed/tasks.json", ".fleet/run.json",
		".nvim.lua", ".exrc", ".vimrc", ".dir-locals.el", ".gdbinit", "mise.toml", ".mise.toml", "web/.yarnrc.yml", ".pnpmfile.cjs", "web/.npmrc",
		"a/.cargo/config.toml", ".bazelrc", "flake.nix", "shell.nix", ".roo/rules/a.md", ".roomodes", ".continue/config.json", ".trae/rules/a.md", ".qwen/settings.json",
		".github/dependabot.yaml", "buildkite.yml", "buildkite/pipeline.json", ".cirrus.star", "codemagic.yaml", "ios/ci_scripts/ci_post_clone.sh",
		".eas/workflows/a.yml", "amplify.yml", ".prow.yaml", ".renovaterc.json5", "mise.ci.toml", ".mise.production.toml", "mise/config.toml", "web/.vs/tasks.vs.json",
		".theia/tasks.json", ".nova/Tasks/a.json", ".helix/languages.toml", ".Renviron", "sub/.pdbrc", ".irbrc", ".pryrc", ".iex.exs", ".ghci", ".ocamlinit",
		".yarn/releases/yarn-4.0.0.cjs", "web/.yarn/plugins/a.cjs", ".pnpmfile.mjs", ".bundle/config", ".mvn/extensions.xml", ".jvmopts", ".sbtopts",
		"user.bazelrc", "tools/bazel", ".github/skills/a/SKILL.md", ".opencode.json", "crush.json", ".crush.json", ".pi/extensions/a.ts", "web/.factory/settings.json",
		".kilocode/rules/a.md", ".amp/settings.json", ".agent/rules/a.md", ".aiassistant/rules/a.md",
		"lefthook.json", ".lefthook.toml", "web/lefthook-local.toml", ".config/lefthook.jsonc", "commitlint.config.mjs", "lint-staged.config.cts", ".lintstagedrc.json",
		"prek.toml", ".vim/coc-settings.json", ".perldb", "QWEN.md", "mcp.json", ".github/mcp.json", ".github/hooks/a.json", ".rules", "AGENT.md", ".augment/rules/a.md",
	} {
		if p.protects(file) == "" {
			t.Errorf("%s is not protected", file)
		}
	}
	for _, file := range []string{
		"README.md", "docs/agents.md.txt", "agents/agents.go", "docs/claude-code.md", "MY-AGENTS.md", "docs/prompts/x.md", ".github/ISSUE_TEMPLATE/a.md",
		"cursor/rules.go", "claude/main.go", "run/main.go", ".config/app.toml", "build.yml", "idx/a.go",
		"mise/main.go", "ci_scripts/build.py", "tools/bazel.md", ".yarn/versions/a.yml", "docs/mise.md", "agent/main.go",
		"docs/lefthook.md", "src/lefthook.ts", "pkg/commitlint.config.go", "chart/render.yaml",
	} {
		if pattern := p.protects(file); pattern != "" {
			t.Errorf("%s is protected by %s", file, pattern)
		}
	}
}

// An agent can make any number of protected paths from few objects: the check stops after enough findings, or when the
// context ends.
func TestJudgeStops(t *testing.T) {
	t.Parallel()
	var changes worktree.Changes
	for i := range 3 * findingsLimit {
		changes.Paths = append(changes.Paths, fmt.Sprintf("%d/AGENTS.md", i))
	}
	p, g := Policy{Secrets: redact.New()}, newGuard(ProtectedPaths(), nil)
	var found findings
	if err := p.checkPaths(t.Context(), changes, g, aliases{}, &found); err != nil || len(found.texts) != findingsLimit+1 {
		t.Errorf("%d findings, error %v", len(found.texts), err)
	}
	if list := found.list(); len(list) != MaxFindings+1 || list[MaxFindings] != "and at least 981 more" {
		t.Errorf("%q", list)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(nil)
	found = findings{}
	if err := p.checkPaths(ctx, changes, g, aliases{}, &found); !errors.Is(err, context.Canceled) || len(found.texts) > 0 {
		t.Errorf("%d findings after the end, error %v", len(found.texts), err)
	}
}

func TestProtectedBelow(t *testing.T) {
	t.Parallel()
	p := newGuard(append(ProtectedPaths(), "ops/*/keys/**", "a/{b,c/d}/e"), nil)
	for _, folder := range []string{".github", ".GitHub", ".github/workflows", ".gitea", "ops", "ops/eu", "ops/eu/keys", "a", "a/b", "a/c/d"} {
		if p.protectsBelow(folder) == "" {
			t.Errorf("nothing below %s is protected", folder)
		}
	}
	folders := []string{"web", "docs/github", "ops/eu/other", "opsx", "a/x"}
	if i := slices.IndexFunc(folders, func(f string) bool { return p.protectsBelow(f) != "" }); i >= 0 {
		t.Errorf("something below %s is protected", folders[i])
	}
}

// All forms of a path that some file system treats as equal are protected.
func TestProtectedForms(t *testing.T) {
	t.Parallel()
	p := newGuard(append(ProtectedPaths(), "gr\u00f6\u00dfe/**"), nil)
	for _, file := range []string{
		"AGENT\u017f.md", "CLAUDE\u200c.md", "\ufeff.cursor/rules/a.mdc", "gro\u0308\u00dfe/x", "GR\u00d6SSE/x", "Gr\u00f6\u1e9ee/x", "gr\u00f6\u00dfe/x",
	} {
		if p.protects(file) == "" {
			t.Errorf("%+q is not protected", file)
		}
	}
	for _, file := range []string{"große/x", "AGENTS\u200b.md", "CLAUD\u00c9.md", "\xff.md"} {
		if pattern := p.protects(file); pattern != "" {
			t.Errorf("%+q is protected by %s", file, pattern)
		}
	}
}
