package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/cli/words"
)

// Bind registers the flags of the keys with one of these uses, and of the named keys, and returns these keys; with neither, all.
// It panics on a name that is not a key.
func Bind(flags *pflag.FlagSet, uses keys.Use, names ...string) []keys.Key {
	var bound []keys.Key
	all := keys.All()
	for i := range all { // no copies: a key is large, and every start of ralph runs this
		k := &all[i]
		if k.Use&uses == 0 && !slices.Contains(names, k.Name) && (uses != 0 || len(names) > 0) {
			continue
		}
		bound = append(bound, *k)
		usage := k.Help
		if len(k.Choices) > 0 {
			usage += " (" + strings.Join(k.Choices, ", ") + ")"
		}
		f := flags.VarPF(&flagValue{key: *k}, k.Flag(), k.Short, usage)
		if k.Kind == keys.Bool {
			f.NoOptDefVal = "true"
		}
	}
	for _, name := range names {
		if _, known := keys.Lookup(name); !known {
			panic("config: no key " + name)
		}
	}
	return bound
}

// OfFlag returns the key of a flag, or false for a flag without one.
func OfFlag(f *pflag.Flag) (keys.Key, bool) {
	v, ok := f.Value.(*flagValue)
	if !ok {
		return keys.Key{}, false
	}
	return v.key, true
}

// flagValue collects the values of a flag. Set checks only what needs no registry of names.
type flagValue struct {
	key   keys.Key
	set   bool
	value any
}

// Set implements pflag.Value. A list flag adds one item per call; an empty item empties the list.
func (f *flagValue) Set(s string) error {
	f.set = true
	switch {
	case f.key.Kind == keys.Words:
		list, err := words.Split(s)
		f.value = append([]string{}, list...)
		return err
	case !f.key.List():
		v, err := f.key.Scalar(s)
		f.value = v
		return err
	case s != "":
		items, _ := f.value.([]string)
		f.value = append(items, s)
		return nil
	case f.key.Check != nil:
		if err := f.key.Check(s); err != nil {
			return fmt.Errorf("it %w", err)
		}
	}
	f.value = []string{}
	return nil
}

// String implements pflag.Value. It is the default in the help.
func (f *flagValue) String() string {
	if f.set || f.key.Name == "" {
		return ""
	}
	if s := Show(f.key.Default); s != "0" && f.key.Kind != keys.Bool {
		return s
	}
	return ""
}

// Type implements pflag.Value. It is the placeholder of the value in the help.
func (f *flagValue) Type() string {
	switch f.key.Kind {
	case keys.Bool:
		return "bool"
	case keys.Int, keys.Float:
		return "N"
	case keys.Duration:
		return "duration"
	case keys.Path:
		return "path"
	case keys.Words:
		return "command"
	case keys.Names, keys.Folders, keys.Lines:
		return "text..." // one item per flag
	case keys.Text:
	}
	return "text"
}

// readFlags reads the flags of the command line.
func readFlags(flags *pflag.FlagSet, r rules) *layer {
	l := newLayer(FromFlag)
	if flags == nil {
		return l
	}
	flags.Visit(func(f *pflag.Flag) {
		given, ok := f.Value.(*flagValue)
		if !ok {
			return
		}
		l.set(given.key, given.key.Place(given.value, r.dir, r.home), "--"+f.Name, "", r.choices(given.key))
	})
	return l
}

// Show formats a value on one line for people, lists with commas.
func Show(v any) string {
	if items, ok := v.([]string); ok {
		return strings.Join(items, ", ")
	}
	return fmt.Sprint(v)
}
