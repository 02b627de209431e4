package pool

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// ProtectedPaths are the paths that an agent's commits may not touch unless a Config says otherwise: what runs by itself
// on a forge or in somebody's editor, what decides who has to review, and what directs agents, this one's successors and
// those of the reviewers. A pattern without a slash holds in every folder. Who wants agents to keep their own
// instructions up to date leaves those patterns out of the Config.
func ProtectedPaths() []string {
	return []string{
		".github/workflows/**", ".github/actions/**", ".gitlab-ci.yml", ".gitlab/**", ".circleci/**", ".travis.yml",
		"Jenkinsfile", "azure-pipelines.yml", "bitbucket-pipelines.yml", ".drone.yml", ".woodpecker.yml", ".woodpecker/**",
		".gitea/workflows/**", ".forgejo/workflows/**", ".buildkite/**", ".github/dependabot.yml",
		"CODEOWNERS", ".gitattributes", ".gitmodules", ".lfsconfig", ".envrc",
		".husky/**", ".githooks/**", ".pre-commit-config.yaml", "lefthook.yml", "**/.vscode/**", "**/.devcontainer/**",
		"AGENTS.md", "AGENTS.override.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md", "WARP.md", "CRUSH.md",
		".github/copilot-instructions.md", ".github/instructions/**", ".github/prompts/**", ".github/agents/**", ".github/chatmodes/**",
		"**/.claude/**", "**/.codex/**", "**/.gemini/**", "**/.agents/**", "**/.cursor/**", ".cursorrules", "**/.opencode/**",
		"opencode.json", "opencode.jsonc", "**/.windsurf/**", ".windsurfrules", "**/.clinerules/**", ".clinerules", "**/.junie/**",
		"**/.kiro/**", "**/.amazonq/**", ".aider.conf.yml", ".goosehints", ".mcp.json", ".ralph/**",
	}
}

// folded is a path as file systems that take several names for one see it: without case, with letters and accents
// composed in one way, and without the characters that show nothing, which HFS+ leaves out.
func folded(path string) string {
	plain := strings.IndexFunc(path, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
	if plain {
		return strings.ToLower(path)
	}
	path = strings.Map(func(r rune) rune {
		switch {
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			return -1
		}
		return r
	}, path)
	return norm.NFC.String(cases.Fold().String(norm.NFD.String(path)))
}

// protects returns the pattern that protects the path. Names that are one on some file systems are one name.
func (p *Pool) protects(file string) string {
	lower := folded(file)
	for _, pattern := range p.cfg.Protected {
		name := lower
		if !strings.Contains(pattern, "/") {
			name = path.Base(lower)
		}
		if doublestar.MatchUnvalidated(folded(pattern), name) {
			return pattern
		}
	}
	return ""
}

// protectsBelow returns a pattern that protects paths below the folder. One that holds in every folder is none: it protects
// them wherever a link of the folder's name leads to.
func (p *Pool) protectsBelow(folder string) string {
	lower := folded(folder)
	for _, pattern := range p.cfg.Protected {
		for at, c := range pattern {
			if c == '/' && pattern[:at] != "**" && doublestar.MatchUnvalidated(folded(pattern[:at]), lower) {
				return pattern
			}
		}
	}
	return ""
}

// checkPatterns refuses patterns that can never match.
func checkPatterns(patterns []string) error {
	var errs []error
	for _, p := range patterns {
		if !doublestar.ValidatePattern(p) {
			errs = append(errs, fmt.Errorf("protected path %q is no valid pattern", p))
		}
	}
	return errors.Join(errs...)
}
