package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/journal/sqlite"
)

// longLog is the page of a log of 100 MB.
const longLog = "/p/project/runs/run-000100/log"

// dashboard measures the pages of a service whose project has many earlier runs: the time of each page, and the memory of
// the process while clients browsers hold streams open.
func (b *bench) dashboard(ctx context.Context, runs, clients int) error {
	s, err := b.newScene(ctx, 200, usualFiles)
	if err != nil {
		return err
	}
	if err := b.withService(ctx, s, "none", func(string, int) error { return nil }); err != nil { // creates the journal
		return err
	}
	b.note("writing %d runs", runs)
	if err := s.history(ctx, runs); err != nil {
		return err
	}
	pages := []string{
		"/", "/p/project", "/p/project/runs", "/p/project/runs?page=150", "/p/project/runs/run-000100",
		longLog, longLog + "?q=not+there", "/p/project/charts",
	}
	took, first, sums, memory := map[string]durations{}, durations{}, durations{}, sizes{}
	for round := range b.rounds {
		b.note("dashboard, round %d of %d", round+1, b.rounds)
		if err := b.withService(ctx, s, "no-human", func(url string, pid int) error {
			began := time.Now()
			if err := fetch(ctx, url+"/p/project"); err != nil {
				return err
			}
			first = append(first, float64(time.Since(began)))
			began = time.Now()
			if err := fetch(ctx, url+"/p/project/charts"); err != nil {
				return err
			}
			sums = append(sums, float64(time.Since(began)))
			stop, err := listen(ctx, url, clients)
			defer stop()
			if err != nil {
				return err
			}
			for range 20 {
				for _, page := range pages {
					began := time.Now()
					if err := fetch(ctx, url+page); err != nil {
						return err
					}
					took[page] = append(took[page], float64(time.Since(began)))
				}
			}
			memory = append(memory, float64(highWater(pid)))
			return nil
		}); err != nil {
			return err
		}
	}
	name := fmt.Sprintf("dashboard with %d runs and %d browsers: ", runs, clients)
	b.out.add(name+"the first page after the start", first, nil, "100 ms")
	b.out.add(name+"charts that are added up anew", sums, nil, "")
	for _, page := range pages {
		b.out.add(name+page, took[page], nil, "100 ms")
	}
	b.out.add(name+"memory", memory, nil, "150 MB")
	return nil
}

// withService runs a service that works the scene's issues with the label, calls use, and ends the service.
func (b *bench) withService(ctx context.Context, s scene, label string, use func(url string, pid int) error) (err error) {
	cmd := s.command(ctx, b.ralph, "serve", "--listen=127.0.0.1:0", "--log-format=text", "--agent=command", "--sandbox=none",
		"--agent-command=sh -c 'exec sleep 1000'", "--label="+label)
	said, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()) }()
	lines := bufio.NewScanner(said)
	last := ""
	for lines.Scan() {
		last = lines.Text()
		if _, url, ok := strings.Cut(lines.Text(), "listening on "); ok {
			go func() { _, _ = io.Copy(io.Discard, said) }()
			url = strings.TrimSuffix(url, "/")
			for fetch(ctx, url+"/readyz") != nil && ctx.Err() == nil {
			}
			return use(url, cmd.Process.Pid)
		}
	}
	return fmt.Errorf("ralph serve has ended: %s", last)
}

func fetch(ctx context.Context, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err = io.Copy(io.Discard, res.Body); err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, res.Status)
	}
	return err
}

// listen opens streams like as many browsers.
func listen(ctx context.Context, url string, clients int) (stop func(), err error) {
	var open []io.Closer
	stop = func() {
		for _, c := range open {
			_ = c.Close()
		}
	}
	for i := range clients {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+[]string{"/live", "/p/project/live"}[i%2], nil)
		if err != nil {
			return stop, err
		}
		res, err := http.DefaultClient.Do(r) //nolint:bodyclose // stop closes it
		if err != nil {
			return stop, err
		}
		open = append(open, res.Body)
		if res.StatusCode != http.StatusOK {
			return stop, fmt.Errorf("client %d: %s", i+1, res.Status)
		}
	}
	return stop, nil
}

// history writes runs into the journal, two for each issue.
func (s scene) history(ctx context.Context, runs int) (err error) {
	found, err := filepath.Glob(filepath.Join(s.dir, "state", "ralph", "*", "state.db"))
	if err != nil || len(found) != 1 {
		return fmt.Errorf("journals %q, %w", found, err)
	}
	store, err := sqlite.Open(ctx, found[0], nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	check := loop.Check{Command: "make test", Tail: strings.Repeat("ok  example.com/shop/cart 1.2s\n", 20)}
	iteration := loop.Iteration{
		Number:   1,
		Agent:    "claude",
		Model:    "opus",
		Ending:   loop.EndingExit,
		Commits:  1,
		Duration: 5 * time.Minute,
		Usage:    agents.Usage{Input: 90_000, Output: 8_000, CostUSD: 0.9},
	}
	for i := range runs {
		began := time.Now().Add(-time.Duration(runs-i) * 4 * time.Minute)
		dir := filepath.Join(s.dir, "runs", fmt.Sprint(i))
		r := journal.Record{
			Run: journal.Run{
				ID:      fmt.Sprintf("run-%06d", i),
				Kind:    journal.KindIssue,
				Key:     fmt.Sprintf("old-%d", i/2),
				Title:   fmt.Sprintf("Commit number %d", i),
				Attempt: 1,
				Agent:   "claude",
				Model:   "opus",
				Branch:  "ralph/x",
				Base:    "main",
				Sandbox: "none",
				Dir:     dir,
				Started: began,
			},
			State: journal.State{
				Stage: journal.StageEnd, Ended: began.Add(10 * time.Minute), Tip: strings.Repeat("a", 40), Commits: 1,
				Facts: journal.Facts{
					Iterations: []loop.Iteration{iteration, iteration},
					Gate:       []loop.Check{check},
					GateRan:    true,
					Message:    strings.Repeat("I have done it. ", 40),
					Verify:     &journal.Verification{Tip: "a", Checks: []loop.Check{check}},
					Usage:      agents.Usage{Input: 180_000, Output: 16_000, CostUSD: 1.8},
				},
				Verdict: journal.Verdict{Outcome: []journal.Outcome{journal.Succeeded, journal.GateFailed}[i%2]},
			},
		}
		if err := store.Save(ctx, r); err != nil {
			return err
		}
	}
	line := `{"seq":1,"time":"2026-11-01T10:00:00Z","kind":"agent","source":"message","text":"` + strings.Repeat("All work and no play. ",
		12) + "\"}\n"
	if err := os.MkdirAll(filepath.Join(s.dir, "runs", "100"), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.dir, "runs", "100", "events.jsonl"), []byte(strings.Repeat(line, 100<<20/len(line))), 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(filepath.Dir(found[0]), "paused"), nil, 0o600) // a paused project starts nothing
}
