package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/cli/trust"
)

// Sources are the places from which Load reads.
type Sources struct {
	Flags   *pflag.FlagSet // registered by Bind; nil: none
	Environ []string       // "K=V"
	Dir     string         // the working directory, absolute
	Repo    string         // the top folder of the user's checkout, absolute; empty: outside of any
	// Project is a service's project; its keys override those of the files. nil: none.
	Project *Project
	// Choices are the registered names, by key.
	Choices map[string][]string
	// Commanded lists the agents whose program is agent-command. The first is the default when only agent-command is set.
	Commanded []string
	// Partial skips the rules between keys, because the values are still being chosen.
	Partial bool
	// Looks is for commands that start nothing: Load drops guarded values that are not accepted, see Loaded.Untrusted.
	Looks bool
	// Trusted returns the guarded values that the user has accepted; nil: none. It is only called if the repository's file has
	// guarded values.
	Trusted func() (trust.Values, error)
}

// File is the path of the repository's configuration below the top of the checkout.
const File = ".ralph/config.yaml"

// Loaded is the effective configuration.
type Loaded struct {
	Config    Config
	Warnings  []string        // one line each
	Untrusted *UntrustedError // the values that Looks dropped; nil: none
	origins   map[string]Origin
	values    map[string]any

	commanded []string
	repo      string // the top of the checkout
	yielded   bool   // some repository values were dropped by yield, so its programs may have no agent
}

// rules is what the parsing of a value needs to know about the process.
type rules struct {
	dir, repo, home string
	environ         []string
	registered      map[string][]string
}

func (r rules) choices(k keys.Key) []string {
	switch {
	case k.Registered:
		return r.registered[k.Name]
	case k.Agents:
		return r.registered["agent"]
	}
	return k.Choices
}

// files reads the user's file and the repository's.
func (s Sources) files() (r rules, user, repository *layer) {
	r = rules{dir: s.Dir, repo: s.Repo, home: Getenv(s.Environ, "HOME"), environ: s.Environ, registered: s.Choices}
	user, repository = newLayer(FromUser), newLayer(FromRepository)
	if path := UserFile(s.Environ); path != "" {
		user = readFile(path, FromUser, r)
		user.chooseAgent(s.Commanded) // otherwise a repository's agent would drop the program
	}
	if s.Repo != "" {
		repository = readFile(filepath.Join(s.Repo, File), FromRepository, r)
	}
	return r, user, repository
}

// misnamed warns of files that end in .yml.
func (s Sources) misnamed() (warnings []string) {
	for _, path := range []string{UserFile(s.Environ), filepath.Join(s.Repo, File)} {
		other := strings.TrimSuffix(path, ".yaml") + ".yml"
		if _, err := os.Stat(other); filepath.IsAbs(path) && err == nil {
			warnings = append(warnings, other+" is ignored; rename it to config.yaml")
		}
	}
	return warnings
}

// Load reads and merges all sources. Its error is a Problems, with everything that is wrong in any of them, or an UntrustedError.
func Load(s Sources) (*Loaded, error) {
	r, user, repository := s.files()
	env, warnings := readEnv(s.Environ, r)
	warnings = append(warnings, s.misnamed()...)
	over := newLayer(FromService)
	if s.Project != nil {
		over = s.Project.layer(r)
	}
	layers := []*layer{user, repository, env, over, readFlags(s.Flags, r)} // weakest first

	loaded := &Loaded{
		Warnings: warnings, origins: map[string]Origin{}, values: map[string]any{}, commanded: s.Commanded, repo: s.Repo,
	}
	guarded := guardedIn(repository, user, s.Repo)
	refused := s.trusted(guarded)
	if s.Looks && errors.As(refused, &loaded.Untrusted) {
		repository.leaveOut(guarded, loaded.Untrusted.Keys)
		refused = nil
	}
	yielded := repository.yield(user, layers[2:], guarded, s.Repo)
	loaded.Warnings, loaded.yielded = append(loaded.Warnings, yielded...), len(yielded) > 0
	problems, err := loaded.merge(layers, r)
	if err != nil {
		return nil, err
	}
	if len(problems) == 0 && !s.Partial && loaded.Untrusted == nil { // the remaining values may need the dropped ones
		problems = loaded.conflicts()
	}
	if len(problems) > 0 {
		return nil, problems
	}
	if refused != nil {
		return nil, refused
	}
	return loaded, nil
}

// merge applies the layers to the defaults and fills the Config.
func (l *Loaded) merge(layers []*layer, r rules) (Problems, error) {
	v := viper.NewWithOptions(viper.KeyDelimiter("/")) // a dot is part of a key's name
	for _, k := range keys.All() {
		v.SetDefault(k.Name, k.Place(k.Default, r.repo, r.home))
		l.origins[k.Name] = Origin{Source: FromDefault}
	}
	var problems Problems
	for _, layer := range layers {
		problems = append(problems, layer.problems...)
		layer.chooseAgent(l.commanded)
		values := maps.Clone(layer.values)
		if layer.dropsProgram(l.commanded) && len(v.GetStringSlice("agent-command")) > 0 {
			values["agent-command"], l.origins["agent-command"] = []string{}, layer.origins["agent"]
		}
		if err := v.MergeConfigMap(values); err != nil {
			return nil, fmt.Errorf("merge configuration: %w", err)
		}
		maps.Copy(l.origins, layer.origins)
	}
	config, at := reflect.ValueOf(&l.Config).Elem(), map[string]int{}
	for i := range config.NumField() {
		at[strings.ToLower(config.Type().Field(i).Name)] = i
	}
	for _, k := range keys.All() {
		l.values[k.Name] = v.Get(k.Name)
		config.Field(at[k.Field()]).Set(reflect.ValueOf(l.values[k.Name]))
	}
	return problems, nil
}

// UserFile returns the path of the user's own configuration, or "" without a home.
func UserFile(environ []string) string {
	if dir := Getenv(environ, "XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "ralph", "config.yaml")
	}
	if home := Getenv(environ, "HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".config", "ralph", "config.yaml")
	}
	return ""
}

// Origin returns the origin of the key's effective value.
func (l *Loaded) Origin(key string) Origin { return l.origins[key] }

// Asked reports whether somebody has set the key to a value other than the default.
func (l *Loaded) Asked(key string) bool {
	k, _ := keys.Lookup(key)
	return l.origins[key].Source != FromDefault && keys.YAML(l.values[key]) != keys.YAML(k.Default)
}

// Texts returns all effective values as text, including secrets: for comparison, not for display.
func (l *Loaded) Texts() map[string]string {
	texts := map[string]string{}
	for name, v := range l.values {
		texts[name] = keys.YAML(v)
	}
	return texts
}

// Entry is one effective value for display.
type Entry struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`
	Source Source `json:"source"`
	Where  string `json:"where,omitempty"`
	Origin Origin `json:"-"`
}

// Entries lists all effective values in the order of the table, with secrets hidden and durations as text.
func (l *Loaded) Entries() []Entry {
	var entries []Entry
	for _, k := range keys.All() {
		o := l.origins[k.Name]
		v := k.Show(l.values[k.Name])
		if s, ok := v.(fmt.Stringer); ok {
			v = keys.ShortDuration(s)
		}
		entries = append(entries, Entry{Key: k.Name, Value: v, Source: o.Source, Where: o.Where, Origin: o})
	}
	return entries
}
