package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/cli/config/keys"
)

// example returns the text of config.example.yaml: every key with its default and its help.
func example() string {
	var b strings.Builder
	b.WriteString(exampleHead)
	group, parent := "", ""
	for _, k := range keys.All() {
		if k.Group != group {
			fmt.Fprintf(&b, "\n# %s\n", k.Group)
			group, parent = k.Group, ""
		}
		name, indent := k.Name, ""
		if p, child, nested := strings.Cut(k.Name, "."); nested {
			if p != parent {
				fmt.Fprintf(&b, "%s:\n", p)
				parent = p
			}
			name, indent = child, "  "
		}
		help := k.Help
		if len(k.Choices) > 0 {
			help += " (" + strings.Join(k.Choices, ", ") + ")"
		}
		if note := note(k); note != "" {
			help += " [" + note + "]"
		}
		if k.Guard == keys.Own {
			name = "# " + name
		}
		fmt.Fprintf(&b, "%-32s # %s\n", indent+name+": "+keys.YAML(k.Default), help)
	}
	return b.String()
}

const exampleHead = `# Every key of ralph's configuration, with its default. Copy the lines you want to change to .ralph/config.yaml in your
# repository, or to ~/.config/ralph/config.yaml for all of them.
#
# Where a key is set more than once, the first of these counts: flag, variable, the repository's file, your own file. The flag
# of a key has its name (--run-timeout; lists take one item each: --label, --gate, --agent-arg), the variable too
# (RALPH_RUN_TIMEOUT).
#
# [guarded]: other values than this act outside the sandbox. In a repository's file they count once you have accepted them
# (ralph trust); in your own file, in variables and in flags they always count. [guarded above your own]: the repository needs
# your consent only for more than your own file says. [yours alone]: a repository's file may not have the key.
# Of every key that your own file has, the repository needs your consent for each other value that is not stricter.
`

// note says in the example which values need trust, for users whose own file does not set the key. It returns "" if none do.
func note(k keys.Key) string {
	if k.Guard == keys.Looser && k.Bound {
		if free := slices.Concat(k.Levels[:k.Level(k.Default)+1]...); len(free) > 1 {
			return "guarded but for " + strings.Join(free, ", ")
		}
		return "guarded"
	}
	note, special := map[keys.Guard]string{
		keys.Ordinary: "",
		keys.Outside:  "guarded outside the repository",
		keys.Above:    "guarded above your own",
		keys.Below:    "guarded below your own",
		keys.Lacking:  "guarded where it lacks some of your own",
		keys.Beyond:   "guarded where it admits more than your own",
		keys.Looser:   "guarded where it is looser than your own",
		keys.Own:      "yours alone",
	}[k.Guard]
	if !special {
		return "guarded"
	}
	switch {
	case k.Bound && k.Guard == keys.Lacking:
		note = strings.Replace(note, "your own", "these", 1)
	case k.Bound:
		note = strings.Replace(note, "your own", "this", 1)
	}
	return note
}
