package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	parallel        = 4
	completeCommand = `echo "<promise>COMPLETE</promise>"`
	// commitAgent is an agent that only commits a file.
	commitAgent = `echo x >work && git add work && git commit --quiet --message=work && ` + completeCommand
	// weighAgent is an agent that commits the size of its files in KiB. Over a shared checkout (a layer) it counts only its own files.
	weighAgent = `{ if [ -d /.changes ]; then du -sk /.changes "$(git rev-parse --absolute-git-dir)"; else du -sk .; fi; } | ` +
		`awk "{n += \$1} END {print n}" >work && ` +
		`git add work && git commit --quiet --message=work && ` + completeCommand
)

// issues measures time and CPU per issue for a small backlog.
func (b *bench) issues(ctx context.Context, n int) error {
	var ours, bare samples
	for round := range b.rounds {
		b.note("%d issues, round %d of %d", n, round+1, b.rounds)
		if err := b.pair(ctx, n, &ours, &bare); err != nil {
			return err
		}
	}
	name := fmt.Sprintf("%d issues, %d at a time", n, parallel)
	b.out.add(name+": time per issue", ours.elapsed.per(n), bare.elapsed.per(n), "1.5")
	b.out.add(name+": CPU per issue", ours.cpu.per(n), bare.cpu.per(n), "")
	return nil
}

// files measures issues one at a time in a repository with n files, with and without isolation. It does not count the first issue.
func (b *bench) files(ctx context.Context, n int, aims map[string]string) error {
	ours, bare := map[string]*samples{"native": {}, "none": {}}, samples{}
	rounds := b.slowRounds() + 1
	s, err := b.newScene(ctx, (rounds+1)*len(ours), n)
	if err != nil {
		return err
	}
	issue := 0
	for round := range rounds {
		b.note("%d files, round %d of %d", n, round, rounds-1)
		for _, sandbox := range slices.Sorted(maps.Keys(ours)) {
			c, err := measure(s.work(ctx, b.ralph, sandbox, commitAgent, "--gate=test -e work || test -e part0", fmt.Sprintf("issue-%04d", issue)))
			if err != nil {
				return err
			}
			if issue++; round > 0 {
				ours[sandbox].add(c)
			}
		}
		c, err := measure(s.floor(ctx, 1, 1, commitAgent))
		if err != nil {
			return err
		}
		if round > 0 {
			bare.add(c)
		}
	}
	if err := s.floor(ctx, 1, 1, weighAgent).Run(); err != nil {
		return err
	}
	space, err := s.committedSize(ctx, "floor/1")
	if err != nil {
		return err
	}
	for _, sandbox := range slices.Sorted(maps.Keys(ours)) {
		key := fmt.Sprintf("issue-%04d", issue)
		issue++
		if _, err := measure(s.work(ctx, b.ralph, sandbox, weighAgent, key)); err != nil {
			return err
		}
		took, err := s.committedSize(ctx, "ralph/"+key)
		if err != nil {
			return err
		}
		b.out.add(fmt.Sprintf("%s, %d files: disk of a run", sandbox, n), took, space, "")
		got := ours[sandbox]
		b.out.add(fmt.Sprintf("%s, %d files: time per issue", sandbox, n), got.elapsed, bare.elapsed, aims[sandbox])
		b.out.add(fmt.Sprintf("%s, %d files: CPU per issue", sandbox, n), got.cpu, bare.cpu, "")
	}
	return errors.Join(s.expect(ctx, "ralph/", issue), os.RemoveAll(s.dir))
}

// committedSize returns the size that the agent weighs has committed on a branch.
func (s scene) committedSize(ctx context.Context, branch string) (sizes, error) {
	out, err := s.command(ctx, "git", "show", branch+":work").Output()
	if err != nil {
		return nil, fmt.Errorf("disk of %s: %w", branch, err)
	}
	kib, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
	return sizes{kib * (1 << 10)}, err
}

// growth compares ralph's time per issue for a large and a small backlog. It must not grow.
func (b *bench) growth(ctx context.Context, few, many int) error {
	var small, large, bare, unused samples
	for round := range b.slowRounds() {
		b.note("%d issues, round %d of %d", many, round+1, b.slowRounds())
		if err := b.pair(ctx, few, &small, &unused); err != nil {
			return err
		}
		if err := b.pair(ctx, many, &large, &bare); err != nil {
			return err
		}
	}
	b.out.add(fmt.Sprintf("%d issues: time per issue", many), large.elapsed.per(many), bare.elapsed.per(many), "1.5")
	b.out.add(fmt.Sprintf("%d issues: CPU per issue", many), large.cpu.per(many), bare.cpu.per(many), "")
	b.out.add(fmt.Sprintf("%d issues beside %d: time per issue", many, few), large.elapsed.per(many), small.elapsed.per(few), "1.0")
	return nil
}

// slowRounds is the number of rounds for slow measurements.
func (b *bench) slowRounds() int { return max(1, b.rounds/3) }

// pair measures ralph and the floor once, each in a new scene.
func (b *bench) pair(ctx context.Context, n int, ours, bare *samples) error {
	s, err := b.newScene(ctx, n, usualFiles)
	if err != nil {
		return err
	}
	c, err := measure(s.work(ctx, b.ralph, "none", commitAgent, fmt.Sprintf("--parallel=%d", parallel)))
	if err != nil {
		return err
	}
	ours.add(c)
	if err := s.expect(ctx, "ralph/", n); err != nil {
		return err
	}
	if s, err = b.newScene(ctx, n, usualFiles); err != nil {
		return err
	}
	if c, err = measure(s.floor(ctx, n, parallel, commitAgent)); err != nil {
		return err
	}
	bare.add(c)
	return s.expect(ctx, "floor/", n)
}

// expect checks that the measured command did its work.
func (s scene) expect(ctx context.Context, prefix string, want int) error {
	have, err := s.branches(ctx, prefix)
	if err == nil && have != want {
		err = fmt.Errorf("%d branches below %s, expected %d", have, prefix, want)
	}
	return err
}

// agents measures memory and total time with n concurrent agents. Each waits until all have started.
func (b *bench) agents(ctx context.Context, n int) error {
	for _, sandbox := range []string{"none", "native"} {
		var ours samples
		for round := range b.rounds {
			b.note("%d agents in %s, round %d of %d", n, sandbox, round+1, b.rounds)
			s, err := b.newScene(ctx, n, usualFiles)
			if err != nil {
				return err
			}
			present := filepath.Join(s.dir, "present")
			if err := os.Mkdir(present, 0o755); err != nil {
				return err
			}
			agent := fmt.Sprintf(`: >%[1]s/$RALPH_ISSUE_KEY; until [ $(ls %[1]s | wc -l) -ge %[2]d ]; do sleep 0.5; done; %[3]s`,
				present, n, commitAgent)
			flags := []string{fmt.Sprintf("--parallel=%d", n)}
			if sandbox != "none" {
				flags = append(flags, "--mount=host="+present+",inside="+present)
			}
			c, err := measure(s.work(ctx, b.ralph, sandbox, agent, flags...))
			if err != nil {
				return err
			}
			ours.add(c)
			if err := s.expect(ctx, "ralph/", n); err != nil {
				return err
			}
		}
		name := fmt.Sprintf("%d agents at once in %s: ", n, sandbox)
		b.out.add(name+"memory", ours.memory, nil, "60 MB")
		b.out.add(name+"time of all", ours.elapsed, nil, "")
	}
	return nil
}

// stream measures an agent with much output: memory, and time compared with writing the same bytes to a file.
func (b *bench) stream(ctx context.Context, size int64) error {
	var ours, bare samples
	talk := fmt.Sprintf(`yes "All work and no play makes an agent say the same thing over and over, line after line after line." | head -c %d`, size)
	for round := range b.slowRounds() {
		b.note("stream of %d MiB, round %d of %d", size>>20, round+1, b.slowRounds())
		s, err := b.newScene(ctx, 1, usualFiles)
		if err != nil {
			return err
		}
		c, err := measure(s.work(ctx, b.ralph, "none", talk+"; echo; "+commitAgent))
		if err != nil {
			return err
		}
		ours.add(c)
		if err := s.expect(ctx, "ralph/", 1); err != nil {
			return err
		}
		if c, err = measure(s.command(ctx, "sh", "-c", talk+" >../bare")); err != nil {
			return err
		}
		bare.add(c)
		if err := os.RemoveAll(s.dir); err != nil {
			return err
		}
	}
	name := fmt.Sprintf("agent that writes %d MiB: ", size>>20)
	b.out.add(name+"memory", ours.memory, nil, "60 MB")
	b.out.add(name+"time", ours.elapsed, bare.elapsed, "")
	return nil
}

// start measures a command that does nothing, compared with git's.
func (b *bench) start(ctx context.Context) error {
	s, err := b.newScene(ctx, 0, usualFiles)
	if err != nil {
		return err
	}
	var ours, bare samples
	began := time.Now()
	for range 20 * b.rounds {
		c, err := measure(s.command(ctx, b.ralph, "version"))
		if err != nil {
			return err
		}
		ours.add(c)
		if c, err = measure(s.command(ctx, "git", "version")); err != nil {
			return err
		}
		bare.add(c)
	}
	b.note("start measured in %s", time.Since(began).Round(time.Millisecond))
	b.out.add("ralph version beside git version: time", ours.elapsed, bare.elapsed, "")
	return nil
}
