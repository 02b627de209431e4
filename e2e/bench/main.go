// Command bench compares ralph with the bare operations:
//
//	go run ./e2e/bench -ralph bin/ralph
//
// It works in throw-away repositories, with an agent that only commits, so that ralph's own cost is measured. Rounds of ralph and
// of the bare operation alternate, so that a machine that becomes slower affects both. docs/benchmarks.md explains the table.
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
	"slices"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
		os.Exit(1)
	}
}

// bench is one run of the program.
type bench struct {
	dir     string // everything is created below it
	ralph   string
	rounds  int
	out     table
	notes   io.Writer // progress
	created int       // number of scenes created
}

// section is a part of the table.
type section struct {
	name    string
	measure func(context.Context) error
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	ralph := flags.String("ralph", "bin/ralph", "the ralph `program` to measure, not built with the race detector")
	rounds := flags.Int("rounds", 5, "how often each measurement is made; at least 1")
	few := flags.Int("issues", 60, "issues of the small backlog")
	many := flags.Int("grow", 1000, "issues of the large backlog")
	large := flags.Int("files", 100_000, "files of the large repository")
	agents := flags.Int("agents", 64, "agents at the same time, for memory")
	stream := flags.Int64("stream", 1<<30, "bytes one agent writes, for memory")
	runs := flags.Int("runs", 10_000, "earlier runs of the dashboard's project")
	waiting := flags.Int("waiting", 10_000, "issues that wait for a fleet")
	only := flags.String("only", "", "sections to measure, separated by commas (issues, growth, files, "+
		"setup, agents, stream, start, dashboard, fleet, machine); empty: all")
	if err := flags.Parse(args); err != nil {
		return err
	}
	program, err := exec.LookPath(*ralph)
	if err == nil {
		program, err = filepath.Abs(program)
	}
	if err != nil {
		return fmt.Errorf("%w; build it with: make build", err)
	}
	dir, err := os.MkdirTemp("", "ralph-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &bench{dir: dir, ralph: program, rounds: max(1, *rounds), notes: stderr}
	sections := []section{
		{"issues", func(ctx context.Context) error { return b.issues(ctx, *few) }},
		{"growth", func(ctx context.Context) error { return b.growth(ctx, *few, *many) }},
		{"files", func(ctx context.Context) error {
			return errors.Join(b.files(ctx, 200, map[string]string{
				"native": "2.5",
				"none":   "1.5",
			}), b.files(ctx, *large, map[string]string{"native": "0.25"}))
		}},
		{"setup", b.setup},
		{"agents", func(ctx context.Context) error { return b.agents(ctx, *agents) }},
		{"stream", func(ctx context.Context) error { return b.stream(ctx, *stream) }},
		{"start", b.start},
		{"dashboard", func(ctx context.Context) error { return b.dashboard(ctx, *runs, 200) }},
		{"fleet", func(ctx context.Context) error {
			return b.withDatabases(func(d *databases) error { return b.fleet(ctx, *waiting, 5**few, d) })
		}},
		{"machine", func(ctx context.Context) error {
			return b.withDatabases(func(d *databases) error { return b.machine(ctx, *few, d) })
		}},
	}
	if err := choose(&sections, *only); err != nil {
		return err
	}
	for _, s := range sections {
		if err := s.measure(ctx); err != nil {
			return fmt.Errorf("measure %s: %w", s.name, err)
		}
	}
	return b.out.print(stdout)
}

// choose reduces sections to the selected ones.
func choose(sections *[]section, only string) error {
	if only == "" {
		return nil
	}
	var chosen []section
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(*sections, func(s section) bool { return s.name == name })
		if i < 0 {
			return fmt.Errorf("no section %q", name)
		}
		chosen = append(chosen, (*sections)[i])
	}
	*sections = chosen
	return nil
}

func (b *bench) note(format string, args ...any) { fmt.Fprintf(b.notes, format+"\n", args...) }
