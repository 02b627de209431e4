// Command demo shows ralph at work, on any machine with Go and git:
//
//	go run ./e2e/demo
//
// It builds ralph and the scripted agent, creates a throw-away repository with six failing checks and a backlog of six
// issues, lets ralph empty the backlog, verifies the result itself, and suggests what to look at.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	// Ctrl-C reaches ralph directly. The demo waits until ralph has ended.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "demo:", err)
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(stderr)
	dir := flags.String("dir", "", "empty `folder` to make the demo in; default: a new temporary one")
	ralph := flags.String("ralph", "", "the ralph `program` to show; default: built from here")
	if err := flags.Parse(args); err != nil {
		return err
	}
	p, err := createPlace(*dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "Building ralph and the scripted agent …\n")
	if err := p.build(ctx, *ralph); err != nil {
		return err
	}
	if err := p.layOut(ctx); err != nil {
		return err
	}
	p.introduce(stdout)
	began := time.Now()
	if err := p.work(ctx, stdout, stderr); err != nil {
		return fmt.Errorf("%w; everything is still in %s", err, p.dir)
	}
	took := time.Since(began)
	if err := p.verify(ctx); err != nil {
		return fmt.Errorf("the result is not as it should be:\n%w\neverything is still in %s", err, p.dir)
	}
	p.conclude(stdout, took)
	return nil
}

// createPlace creates the demo's folder.
func createPlace(dir string) (place, error) {
	if dir == "" {
		made, err := os.MkdirTemp("", "ralph-demo-")
		return place{made}, err
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return place{}, err
	}
	if err := os.MkdirAll(abs, 0o755); err != nil {
		return place{}, err
	}
	entries, err := os.ReadDir(abs)
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("--dir %s: is not empty", abs)
	}
	return place{abs}, err
}

// build builds both programs into the demo's folder.
func (p place) build(ctx context.Context, ralph string) error {
	programs := map[string]string{"scripted-agent": "e2e/scripted/cmd", "ralph": "cmd/ralph"}
	if ralph != "" {
		found, err := exec.LookPath(ralph)
		if err != nil {
			return fmt.Errorf("--ralph: %w", err)
		}
		if found, err = filepath.Abs(found); err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(p.program("ralph")), 0o755); err != nil {
			return err
		}
		if err := os.Symlink(found, p.program("ralph")); err != nil {
			return err
		}
		delete(programs, "ralph")
	}
	for name, pkg := range programs {
		cmd := exec.CommandContext(ctx, "go", "build", "-o", p.program(name), "github.com/ralph-pool/ralph/"+pkg)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w: %s", name, err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}

// command returns the command line of the sweep that the demo shows.
func (p place) command() []string {
	agent := fmt.Sprintf("'%s' --script '%s' --log '%s'", p.program("scripted-agent"), p.script(), p.starts())
	return []string{
		p.program("ralph"), "work", "--parallel", "4", "--sandbox", "none", "--publish", "merge",
		"--agent", "command", "--agent-command", agent, "--repo", p.repo(),
	}
}

// work runs the sweep. If stdout and stderr are terminals, ralph writes directly to them.
func (p place) work(ctx context.Context, stdout, stderr io.Writer) error {
	argv := p.command()
	cmd := exec.Command(argv[0], argv[1:]...) // without ctx: Ctrl-C reaches it directly
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = p.dir, p.environment(), os.Stdin, stdout, stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	if err != nil {
		return fmt.Errorf("ralph work: %w", err)
	}
	return nil
}

func (p place) introduce(w io.Writer) {
	fmt.Fprintf(w, `
A throw-away repository is in %s: a small shell program, six failing checks,
and a backlog of six issues in .ralph/backlog. One waits for another, one is not labelled no-human, and the
first try at one will fail its gate. The agent is scripted: no model is behind it, but its edits, checks and
commits are real.

$ %s

`, p.repo(), shell(p.command()))
}

func (p place) conclude(w io.Writer, took time.Duration) {
	fmt.Fprintf(w, `
Five issues are done in %s, each check passes on its branch and on main, and %s was left for a person.

To look at it:
  cd %s
  export PATH=%s:"$PATH" XDG_STATE_HOME=%s

  git log --oneline --branches --graph the branches, and how they were merged
  cat .ralph/backlog/add-mean.md       an issue, with the report under it
  ralph status                         how the runs ended
  ralph show add-mean                  the gate refused its first iteration
  ralph logs add-mean                  what happened in it
  ralph work --dry-run --sandbox none  what is left, and why

When you have seen enough: rm -r %s
`, took.Round(10*time.Millisecond), humanIssue, word(p.repo()), word(filepath.Dir(p.program("ralph"))), word(p.state()), word(p.dir))
}

// shell formats a command line for a shell.
func shell(argv []string) string {
	words := make([]string, len(argv))
	for i, a := range argv {
		words[i] = word(a)
	}
	return strings.Join(words, " ")
}

// word quotes a word for a shell if necessary.
func word(s string) string {
	if s != "" && !strings.ContainsAny(s, " \t\n'\"\\$`&|;<>()*?[]#~!{}") {
		return s
	}
	if !strings.Contains(s, `'`) || strings.ContainsAny(s, "\"\\$`!") {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return `"` + s + `"`
}
