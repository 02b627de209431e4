package git

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Config is the user's git configuration, in the order in which git reads it.
type Config []Setting

// Setting is one entry of a configuration. In names listed by git, section and key are in lower case.
type Setting struct{ Name, Value string }

// LocatedSetting is a setting with the absolute path of its file.
type LocatedSetting struct {
	Setting
	Origin string
}

// Config reads the user's configuration, without the hardened settings.
func (g Runner) Config(ctx context.Context) (Config, error) {
	settings, err := g.Settings(ctx)
	config := make(Config, len(settings))
	for i, s := range settings {
		config[i] = s.Setting
	}
	return config, err
}

// Settings is like [Runner.Config], with the file of each setting. The caller must not change the result.
func (g Runner) Settings(ctx context.Context) ([]LocatedSetting, error) {
	if cached := g.cache.lookup(g); cached != nil {
		return cached.settings, nil
	}
	files := g.configFiles()
	out, err := g.With("GIT_CONFIG_COUNT=0").Run(ctx, "", "config", "--list", "-z", "--includes", "--show-origin")
	if err != nil {
		return nil, fmt.Errorf("read git's configuration: %w", err)
	}
	settings := parseConfig(out, g.dir)
	g.cache.store(g, settings, files)
	return settings, nil
}

// parseConfig parses the output of `git config --list -z --show-origin`, run in dir. A key without a value counts as true.
func parseConfig(out, dir string) []LocatedSetting {
	settings := []LocatedSetting{}
	fields := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		origin := strings.TrimPrefix(fields[i], "file:")
		if !filepath.IsAbs(origin) {
			origin = filepath.Join(dir, origin)
		}
		name, value, ok := strings.Cut(fields[i+1], "\n")
		if !ok {
			value = "true"
		}
		if name != "" {
			settings = append(settings, LocatedSetting{Setting{name, value}, origin})
		}
	}
	return settings
}

// Get returns the last value of a name, or "".
func (c Config) Get(name string) string {
	for _, s := range slices.Backward(c) {
		if s.Name == name {
			return s.Value
		}
	}
	return ""
}

// Split splits a name into its parts. The subsection keeps its case and may contain dots.
func (s Setting) Split() (section, subsection, key string) {
	first, last := strings.Index(s.Name, "."), strings.LastIndex(s.Name, ".")
	if first < 0 {
		return s.Name, "", ""
	}
	if first < last {
		subsection = s.Name[first+1 : last]
	}
	return s.Name[:first], subsection, s.Name[last+1:]
}

// String formats the settings as a configuration file that git reads back unchanged.
func (c Config) String() string {
	var b strings.Builder
	for _, s := range c {
		section, subsection, key := s.Split()
		if subsection != "" {
			section += " " + quoteConfig(subsection)
		}
		fmt.Fprintf(&b, "[%s]\n\t%s = %s\n", section, key, quoteConfig(s.Value))
	}
	return b.String()
}

func quoteConfig(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(s) + `"`
}

// Ident returns the user's name and address for commits, or ralph's if they are not configured.
func (c Config) Ident() (name, email string) {
	name = cmp.Or(os.Getenv("GIT_AUTHOR_NAME"), c.Get("author.name"), c.Get("user.name"))
	email = cmp.Or(os.Getenv("GIT_AUTHOR_EMAIL"), c.Get("author.email"), c.Get("user.email"))
	if name == "" || email == "" {
		return selfName, selfEmail
	}
	return name, email
}

// File returns the content of the user's file that the setting names, or of git's default file for it.
func (c Config) File(name, fallback string) string {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/"
	}
	usual := filepath.Join(cmp.Or(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config")), filepath.FromSlash(fallback))
	path := cmp.Or(c.Get(name), usual)
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		path = filepath.Join(home, rest)
	}
	content, err := ReadLinked(path)
	if err != nil || len(content) == 0 {
		return ""
	}
	return strings.TrimSuffix(string(content), "\n") + "\n"
}

// WithoutPrograms returns an environment that disables every program in the configuration: filters, merge drivers and diff
// drivers. An agent's .gitattributes could select any of them. The environment also sets more.
func (c Config) WithoutPrograms(more ...Setting) []string {
	config := slices.Clone(more)
	for _, s := range c {
		section, subsection, key := s.Split()
		if strings.Count(s.Name, ".") < 2 { // [filter ""] has two dots: attributes select it with "filter="
			continue
		}
		name := section + "." + subsection + "."
		switch {
		case section == "filter" && (key == "clean" || key == "smudge" || key == "process" || key == "required"):
			// An empty process takes precedence over clean and smudge.
			config = append(config, Setting{name + "process", ""}, Setting{name + "required", "false"})
		case section == "diff" && (key == "textconv" || key == "command"):
			config = append(config, Setting{name + key, ""})
		case section == "merge" && key == "driver":
			config = append(config, Setting{name + key, "false"}) // a driver that fails causes a conflict
		}
	}
	return HardenedEnv(config...)
}
