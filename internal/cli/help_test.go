package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ralph-pool/ralph/internal/cli/compose"
)

// eachCommand calls f for every command, with the words of its command line.
func eachCommand(root *cobra.Command, f func(words []string, c *cobra.Command)) {
	f(strings.Fields(root.CommandPath())[1:], root)
	for _, c := range root.Commands() {
		eachCommand(c, f)
	}
}

// TestHelpFitsTheTerminal checks that no line of any help is wider than the terminal, and no word is broken.
func TestHelpFitsTheTerminal(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	var out, errs bytes.Buffer
	commands := 0
	root := newRoot(compose.New(m.host(&out, &errs)))
	eachCommand(root, func(words []string, c *cobra.Command) {
		if len(words) == 2 && words[0] == "completion" {
			return // cobra's own
		}
		commands++
		var wide []string
		for _, width := range []string{"120", "80"} {
			for _, flag := range []string{"--help-all", "--help"} {
				got := m.run(t, func(h *compose.Host) { h.Env = append(h.Env, "COLUMNS="+width) }, append(slices.Clone(words), flag)...)
				if got.status != 0 || got.stderr != "" {
					t.Fatalf("%v %s: %+v", words, flag, got)
				}
				limit := map[string]int{"80": 80, "120": 120}[width]
				for line := range strings.Lines(got.stdout) {
					if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > limit {
						t.Errorf("%v %s: %d characters in %d columns: %s", words, flag, n, limit, line)
					}
				}
				if flag == "--help-all" {
					if text := strings.Fields(got.stdout); wide == nil {
						wide = text
					} else if !slices.Equal(wide, text) {
						t.Errorf("%v: the words are not the same in 80 and in 120 columns", words)
					}
				}
			}
		}
		c.Flags().AddFlagSet(c.InheritedFlags())
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !slices.Contains(wide, "--"+f.Name) && !f.Hidden && f.Name != "help-all" {
				t.Errorf("%v --help-all leaves out --%s", words, f.Name)
			}
		})
	})
	if commands < 20 {
		t.Errorf("only %d commands", commands)
	}
}

// --help-all also works after help, and help mentions it where it shows more.
func TestHelpAll(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	if got, want := m.run(t, nil, "help", "work", "--help-all"), m.run(t, nil, "work", "--help-all"); got != want || !strings.Contains(got.stdout, "--retry-backoff ") {
		t.Errorf("got %+v", got)
	}
	if got, want := m.run(t, nil, "help", "--help-all"), m.run(t, nil, "help"); got != want {
		t.Errorf("got %+v", got)
	}
	if got := m.run(t, nil, "stop", "--help").stdout; strings.Contains(got, "--help-all") {
		t.Errorf("stop has a flag that adds nothing:\n%s", got)
	}
}

// TestHelpShowsFewFlags checks that the most used flags come first, and that the help says how to list the others.
func TestHelpShowsFewFlags(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	got := m.run(t, nil, "work", "--help").stdout
	for name, first := range map[string]string{"merge": "--all", "serve": "--database", "init": "-y, --yes"} {
		_, flags, _ := strings.Cut(m.run(t, nil, name, "--help").stdout, "Common flags:\n")
		if !strings.HasPrefix(strings.TrimLeft(flags, " "), first+" ") {
			t.Errorf("%s does not begin with its own flags:\n%s", name, flags)
		}
	}
	if got := m.run(t, nil, "run", "--help").stdout; strings.Count(got, " --max-iterations int ") != 1 {
		t.Errorf("run lists its --max-iterations, which is also the name of a key, more than once:\n%s", got)
	}
	if got := m.run(t, nil, "serve", "--help").stdout; !strings.Contains(got, "  --listen ") || !strings.Contains(got, "  --poll ") {
		t.Errorf("serve leaves out its own flags:\n%s", got)
	}
	_, flags, _ := strings.Cut(got, "Common flags:\n")
	flags, rest, _ := strings.Cut(flags, "\n\n")
	if n := strings.Count(flags, "  --"); n+strings.Count(flags, ", --") != 3+fewKeys || !strings.HasPrefix(flags, "  -n, --dry-run") {
		t.Errorf("%d flags:\n%s", n, flags)
	}
	if !strings.HasPrefix(rest, "`ralph work --help-all` lists ") {
		t.Errorf("got %q", rest)
	}
	if got := m.run(t, nil, "work", "--help-all", "--bogus").stdout; !strings.Contains(got, "\nRetries and budget:\n") {
		t.Errorf("no groups:\n%s", got)
	}
	short := map[string]string{"-n": "dry-run", "-p": "parallel", "-a": "agent", "-l": "label", "-q": "quiet", "-v": "verbose", "-h": "help"}
	for letter, name := range short {
		if !strings.Contains(got, letter+", --"+name) {
			t.Errorf("work has no %s for --%s", letter, name)
		}
	}
}

// No command has a flag without effect.
func TestFlagsHaveAMeaning(t *testing.T) {
	t.Parallel()
	root := newRoot(compose.New(compose.Host{}))
	if completion, _, err := root.Find([]string{"completion"}); err != nil || !strings.Contains(completion.Long, "the package bash-completion") {
		t.Errorf("completion does not say what bash needs: %v", err)
	}
	for name, without := range map[string][]string{
		"merge":  {"agent", "parallel", "publish", "max-iterations", "budget-usd", "label"},
		"prompt": {"parallel", "publish", "max-iterations", "sandbox", "budget-usd", "label"},
	} {
		cmd, _, err := root.Find([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		for _, flag := range without {
			if cmd.Flags().Lookup(flag) != nil {
				t.Errorf("ralph %s has --%s", name, flag)
			}
		}
		if cmd.Flags().Lookup("gate") == nil {
			t.Errorf("ralph %s has no --gate", name)
		}
	}
}

// A command that is made alone, because the command line begins with it, equals the one made among all others.
func TestCommandsAlone(t *testing.T) {
	t.Parallel()
	a := compose.New(compose.Host{})
	whole := newRoot(a)
	for name := range constructors() {
		alone, _, err := newRoot(a, name).Find([]string{name})
		if err != nil || alone.Name() != name {
			t.Errorf("%s is made for %q, %v", alone.Name(), name, err)
			continue
		}
		among, _, err := whole.Find([]string{name})
		if err != nil || help(a, alone) != help(a, among) {
			t.Errorf("the help of %s differs: %v", name, err)
		}
		if n := len(newRoot(a, name).Commands()); n > 2 { // the command and help
			t.Errorf("%d commands are made for %s", n, name)
		}
	}
	for _, args := range [][]string{{"--repo", "work", "status"}, {"wrok"}, {"help", "work"}, {"__complete", "w"}} {
		if len(newRoot(a, args...).Commands()) < len(constructors()) {
			t.Errorf("commands are missing for %q", args)
		}
	}
}

// A line that ends in a colon ends its paragraph, so no sentence may continue after it.
func TestHelpParagraphs(t *testing.T) {
	t.Parallel()
	eachCommand(newRoot(compose.New(compose.Host{})), func(words []string, c *cobra.Command) {
		lines := strings.Split(c.Long, "\n")
		for i := range len(lines) - 1 {
			if r, _ := utf8.DecodeRuneInString(lines[i+1]); strings.HasSuffix(lines[i], ":") && 'a' <= r && r <= 'z' {
				t.Errorf("%v: the paragraph is broken behind %q", words, lines[i])
			}
		}
	})
}
