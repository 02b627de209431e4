package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Example is the text of config.example.yaml: every key, its default and its help.
func Example() string {
	var b strings.Builder
	b.WriteString(exampleHead)
	group, parent := "", ""
	for _, k := range Keys() {
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
		if note := k.note(); note != "" {
			help += " [" + note + "]"
		}
		if k.Guard == Own {
			name = "# " + name
		}
		fmt.Fprintf(&b, "%-32s # %s\n", indent+name+": "+YAML(k.Default), help)
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

// YAML writes a value of Config as it stands in a file.
func YAML(v any) string {
	switch v := v.(type) {
	case []string:
		items := make([]string, len(v))
		for i, item := range v {
			items[i] = scalarYAML(item)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case string:
		return scalarYAML(v)
	case time.Duration:
		return shortDuration(v)
	}
	return fmt.Sprint(v)
}

// scalarYAML quotes what YAML could take for something else than text.
func scalarYAML(s string) string {
	plain := s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-' && r != '/' && r != '.' && r != '_'
	}) && !strings.HasPrefix(s, "-") && !strings.HasPrefix(s, ".")
	switch strings.ToLower(s) {
	case "true", "false", "yes", "no", "on", "off", "null", "y", "n":
		plain = false
	}
	if plain {
		return s
	}
	return strconv.Quote(s)
}
