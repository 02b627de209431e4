package worktree

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// userConfig is the user's git configuration as it holds in a worktree. No agent that has a private repository can
// write it.
type userConfig []setting

// setting is one of its lines. The name is as git lists it: section and key in lower case.
type setting struct{ name, value string }

// userConfig reads it, once for each Tree: a run is worked under one configuration.
func (t *Tree) userConfig(ctx context.Context) (userConfig, error) {
	t.mu.Lock()
	known := t.config
	t.mu.Unlock()
	if known != nil {
		return known, nil
	}
	// Ralph's own settings come by the environment, and are none of the user's.
	out, err := t.git().with("GIT_CONFIG_COUNT=0").run(ctx, "", "config", "--list", "-z", "--includes")
	if err != nil {
		return nil, fmt.Errorf("read git's configuration: %w", err)
	}
	config := parseConfig(out)
	t.mu.Lock()
	t.config = config
	t.mu.Unlock()
	return config, nil
}

// parseConfig reads `git config --list -z`. A key without a value counts as true.
func parseConfig(out string) userConfig {
	config := userConfig{}
	for record := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		name, value, ok := strings.Cut(record, "\n")
		if !ok {
			value = "true"
		}
		if name != "" {
			config = append(config, setting{name, value})
		}
	}
	return config
}

// get is the last value of a name; empty when there is none.
func (c userConfig) get(name string) string {
	for _, s := range slices.Backward(c) {
		if s.name == name {
			return s.value
		}
	}
	return ""
}

// split takes a name apart; subsection keeps its case and may hold dots.
func (s setting) split() (section, subsection, key string) {
	first, last := strings.Index(s.name, "."), strings.LastIndex(s.name, ".")
	if first < 0 {
		return s.name, "", ""
	}
	if first < last {
		subsection = s.name[first+1 : last]
	}
	return s.name[:first], subsection, s.name[last+1:]
}

// plain are the settings that decide what files and commits look like. None of them names a program or a path.
func plain(name string) bool {
	return slices.Contains([]string{
		"core.autocrlf", "core.eol", "core.safecrlf", "core.filemode", "core.symlinks", "core.ignorecase",
		"core.precomposeunicode", "core.protecthfs", "core.protectntfs", "core.sparsecheckout", "core.sparsecheckoutcone",
		"core.quotepath", "core.abbrev", "core.whitespace", "core.commentchar", "core.bigfilethreshold",
		"i18n.commitencoding", "merge.conflictstyle", "diff.algorithm", "diff.renames",
	}, name)
}

// private is the configuration of a private repository.
func (c userConfig) private(format string) string {
	var b strings.Builder
	version := "0"
	if format != "sha1" {
		version = "1"
	}
	own := userConfig{{"core.repositoryformatversion", version}, {"core.bare", "false"}, {"core.logallrefupdates", "true"}}
	if format != "sha1" {
		own = append(own, setting{"extensions.objectformat", format})
	}
	for _, s := range c {
		section, _, key := s.split()
		if plain(s.name) || section == "filter" && slices.Contains([]string{"clean", "smudge", "process", "required"}, key) {
			own = append(own, s)
		}
	}
	name, email := c.ident(environ())
	own = append(own, setting{"user.name", name}, setting{"user.email", email},
		setting{"gc.auto", "0"}, setting{"maintenance.auto", "false"},
		// Inside, owner and inode of a file need not be those of the index that the host made.
		setting{"core.checkstat", "minimal"}, setting{"core.trustctime", "false"})
	for _, s := range own {
		section, subsection, key := s.split()
		if subsection != "" {
			section += " " + quoteConfig(subsection)
		}
		fmt.Fprintf(&b, "[%s]\n\t%s = %s\n", section, key, quoteConfig(s.value))
	}
	return b.String()
}

// quoteConfig writes text so that git reads the same.
func quoteConfig(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(s) + `"`
}

// ident is the user's name for commits, or ralph's where none is configured.
func (c userConfig) ident(environ []string) (name, email string) {
	env := func(key string) string {
		return strings.TrimPrefix(strings.Join(pick(environ, []string{key}), ""), key+"=")
	}
	name = cmp.Or(env("GIT_AUTHOR_NAME"), c.get("author.name"), c.get("user.name"))
	email = cmp.Or(env("GIT_AUTHOR_EMAIL"), c.get("author.email"), c.get("user.email"))
	if name == "" || email == "" {
		return "ralph", "ralph@localhost"
	}
	return name, email
}

// file is the content of the user's own file that the setting names, or of the one that git takes without it.
func (c userConfig) file(name, fallback string) string {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/"
	}
	path := c.get(name)
	if path == "" {
		path = filepath.Join(cmp.Or(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config")), filepath.FromSlash(fallback))
	}
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		path = filepath.Join(home, rest)
	}
	content, err := os.ReadFile(path)
	if err != nil || len(content) == 0 {
		return ""
	}
	return strings.TrimSuffix(string(content), "\n") + "\n"
}

// inert is the environment that takes every program out of the configuration: filters, merge and diff drivers. Their
// names are known, because the configuration is out of the agent's reach; which of them a file asks for is not. More is
// set besides.
func (c userConfig) inert(more ...[2]string) []string {
	config := append(hardened(), more...)
	for _, s := range c {
		section, subsection, key := s.split()
		if subsection == "" {
			continue
		}
		off := section + "." + subsection + "."
		switch {
		case section == "filter" && (key == "clean" || key == "smudge" || key == "process" || key == "required"):
			// An empty process wins over clean and smudge.
			config = append(config, [2]string{off + "process", ""}, [2]string{off + "required", "false"})
		case section == "diff" && (key == "textconv" || key == "command"):
			config = append(config, [2]string{off + key, ""})
		case section == "merge" && key == "driver":
			config = append(config, [2]string{off + key, "false"}) // what it would have merged is a conflict
		}
	}
	env := []string{"GIT_CONFIG_COUNT=" + strconv.Itoa(len(config))}
	for i, kv := range config {
		n := strconv.Itoa(i)
		env = append(env, "GIT_CONFIG_KEY_"+n+"="+kv[0], "GIT_CONFIG_VALUE_"+n+"="+kv[1])
	}
	return env
}
