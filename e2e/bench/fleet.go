package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/ralph-pool/ralph/pool/fleet/fleettest"
	"github.com/ralph-pool/ralph/worktree"
)

const (
	fleetMachines = 3
	fleetProjects = 6
	fleetParallel = 2 // concurrent issues per machine
	// noChangeAgent is an agent that changes nothing and appends a line to a log. It runs once per issue, because a no-change
	// issue is not retried.
	noChangeAgent = `echo x >>"$BENCH_LOG"; echo "<no-change>measured</no-change>"`
)

// fleetScene has the remotes of several projects, and their clones on several machines.
type fleetScene struct {
	scene    // the first project's repository
	projects []string
	log      string // one line for each agent that has run
}

// clone returns the path of a project's clone on a machine.
func (f fleetScene) clone(machine int, project string) string {
	return filepath.Join(f.dir, fmt.Sprint("machine", machine), project)
}

// newFleetScene creates machines with clones of the projects, each with the given number of issues.
func (b *bench) newFleetScene(ctx context.Context, machines, projects, issues int) (f fleetScene, err error) {
	if f.scene, err = b.newScene(ctx, issues, usualFiles); err != nil {
		return f, err
	}
	f.log = filepath.Join(f.dir, "log")
	var script strings.Builder
	script.WriteString("set -e\n")
	for p := range projects {
		name := fmt.Sprint("p", p)
		f.projects = append(f.projects, name)
		remote := filepath.Join(f.dir, name+".git")
		fmt.Fprintf(&script, "git clone --quiet --bare . %s\n", quote(remote))
		for m := range machines {
			clone := f.clone(m, name)
			fmt.Fprintf(&script, "git clone --quiet %s %s\ncp -r .ralph %s\n", quote(remote), quote(clone), quote(clone))
		}
	}
	if out, err := f.command(ctx, "sh", "-c", script.String()).CombinedOutput(); err != nil {
		return f, fmt.Errorf("clones: %w: %s", err, out)
	}
	return f, nil
}

// commandOn returns a command that runs on a machine.
func (f fleetScene) commandOn(ctx context.Context, machine int, name string, args ...string) *exec.Cmd {
	cmd := f.command(ctx, name, args...)
	cmd.Env = append(cmd.Env, "BENCH_LOG="+f.log, fmt.Sprintf("XDG_STATE_HOME=%s/state%d", f.dir, machine))
	return cmd
}

// ended returns the number of agents that have run.
func (f fleetScene) ended() int {
	text, _ := os.ReadFile(f.log)
	return bytes.Count(text, []byte("\n"))
}

// timeAgents measures the time between the end of the first agent and that of the n-th after it. Then it ends programs that serve.
func (f fleetScene) timeAgents(n int, serves bool, programs ...*exec.Cmd) (elapsed, cpu time.Duration, err error) {
	var all sync.WaitGroup
	errs := make([]error, len(programs))
	over := make(chan struct{})
	outputs := make([]bytes.Buffer, len(programs))
	for i, p := range programs {
		p.Stdout, p.Stderr = &outputs[i], &outputs[i]
		if err := p.Start(); err != nil {
			return 0, 0, err
		}
		all.Go(func() { errs[i] = p.Wait() })
	}
	go func() { all.Wait(); close(over) }()
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	issues := n + 1
	var began time.Time
	for waits := true; waits && elapsed == 0; {
		select {
		case <-look.C:
		case <-over:
			waits = false
		}
		switch ended := f.ended(); {
		case began.IsZero() && ended > 0:
			began = time.Now()
			n += ended
		case !began.IsZero() && ended >= n:
			elapsed = time.Since(began)
		}
	}
	if serves {
		for _, p := range programs {
			_ = p.Process.Signal(syscall.SIGTERM)
		}
	}
	<-over
	for i, p := range programs {
		cpu += p.ProcessState.UserTime() + p.ProcessState.SystemTime()
		if errs[i] != nil && elapsed == 0 {
			err = errors.Join(err, fmt.Errorf("%w: %s", errs[i], strings.TrimSpace(outputs[i].String())))
		}
	}
	if ended := f.ended(); !serves && ended > issues {
		err = errors.Join(err, fmt.Errorf("%d agents for %d issues", ended, issues))
	}
	if elapsed == 0 && err == nil {
		err = fmt.Errorf("%d agents have ended, not %d: %s", f.ended(), n, strings.TrimSpace(outputs[0].String()))
	}
	return elapsed, cpu, err
}

// serve returns a machine of a fleet that works up to parallel issues of the projects at a time.
func (b *bench) serve(ctx context.Context, f fleetScene, database string, machine, parallel int, projects ...string) (*exec.Cmd, error) {
	var list strings.Builder
	fmt.Fprintf(&list, "parallel: %d\nprojects:\n", parallel)
	for _, p := range projects {
		fmt.Fprintf(&list, "  - {repo: %s, name: %s, parallel: %d, agent: command, sandbox: none}\n", f.clone(machine, p), p, parallel)
	}
	path := filepath.Join(f.dir, fmt.Sprintf("serve%d.yaml", machine))
	if err := os.WriteFile(path, []byte(list.String()), 0o600); err != nil {
		return nil, err
	}
	cmd := f.commandOn(ctx, machine, b.ralph, "serve", "--listen=none", path)
	cmd.Env = append(cmd.Env, "RALPH_DATABASE="+database, "RALPH_AGENT_COMMAND=sh -c "+quote(noChangeAgent))
	return cmd, nil
}

// floor works n issues, numbered from a given number, on all machines with nothing but ralph's package worktree: a claim on
// the remote, a worktree, the agent, and the removal of both. It is the speed limit that git sets.
func (f fleetScene) floor(ctx context.Context, from, n int) (c cost, err error) {
	before, began := cpuUsed(), time.Now()
	work := make(chan int)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(work)
		for i := range n {
			select {
			case work <- from + i:
			case <-ctx.Done():
				return nil
			}
		}
		return nil
	})
	for m := range fleetMachines {
		repos := make([]*worktree.Repo, len(f.projects))
		for p, name := range f.projects {
			state := filepath.Join(f.dir, fmt.Sprintf("floor%d", m), name)
			if repos[p], err = worktree.Open(ctx, f.clone(m, name), worktree.Options{StateDir: state, Remote: "origin"}); err != nil {
				return c, err
			}
		}
		for range fleetParallel {
			group.Go(func() error {
				for i := range work {
					if err := f.workBare(ctx, m, repos[i%len(repos)], fmt.Sprint("floor-", i)); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	err = group.Wait()
	return cost{elapsed: time.Since(began), cpu: cpuUsed() - before}, err
}

// workBare works one issue.
func (f fleetScene) workBare(ctx context.Context, machine int, r *worktree.Repo, key string) error {
	base, err := r.Base(ctx, "main")
	if err != nil {
		return err
	}
	claim, err := r.Claim(ctx, key, worktree.Holder{Owner: "bench", Run: key}, time.Hour)
	if err != nil {
		return err
	}
	tree, err := r.Add(ctx, worktree.Spec{Run: key, Key: key, Branch: "floor/" + key, Base: base})
	if err != nil {
		return err
	}
	agent := f.commandOn(ctx, machine, "sh", "-c", noChangeAgent)
	agent.Dir = tree.Dir()
	if err := agent.Run(); err != nil {
		return err
	}
	return errors.Join(tree.Remove(ctx), claim.Finish(ctx, worktree.ClaimRecord{Run: key, Outcome: "no-change"}))
}

// cpuUsed returns the CPU time of this process and of the children that it has waited for.
func cpuUsed() (sum time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return sum
}

// databases creates databases for fleets on a server that the benchmark started.
type databases struct {
	b       *bench
	server  *fleettest.Server
	created int
}

// withDatabases calls do with a server, or skips it if PostgreSQL is missing.
func (b *bench) withDatabases(do func(*databases) error) error {
	server, end, err := fleettest.New()
	if err != nil || server == nil {
		b.note("PostgreSQL is not installed: no figures of the fleet")
		return err
	}
	defer end()
	return do(&databases{b: b, server: server})
}

// database creates a database with ralph's schema and returns its address.
func (d *databases) database(ctx context.Context) (string, error) {
	d.created++
	name := fmt.Sprint("bench", d.created)
	c, err := pgx.Connect(ctx, d.server.URL("postgres"))
	if err != nil {
		return "", err
	}
	_, err = c.Exec(ctx, "CREATE DATABASE "+name)
	if err = errors.Join(err, c.Close(ctx)); err != nil {
		return "", err
	}
	_, err = measure(exec.CommandContext(ctx, d.b.ralph, "fleet", "migrate", "--database", d.server.URL(name)))
	return d.server.URL(name), err
}

// fleet measures how fast three machines start an agent that does nothing for waiting issues, compared with floor.
func (b *bench) fleet(ctx context.Context, waiting, n int, d *databases) error {
	var fleet, git samples
	f, err := b.newFleetScene(ctx, fleetMachines, fleetProjects, waiting/fleetProjects)
	if err != nil {
		return err
	}
	where, err := d.database(ctx)
	if err != nil {
		return err
	}
	done := 0
	for round := range b.rounds {
		b.note("fleet with %d issues waiting, round %d of %d", waiting, round+1, b.rounds)
		var machines []*exec.Cmd
		for m := range fleetMachines {
			cmd, err := b.serve(ctx, f, where, m, fleetParallel, f.projects...)
			if err != nil {
				return err
			}
			machines = append(machines, cmd)
		}
		if err := f.measureAgents(n, true, &fleet, machines...); err != nil {
			return err
		}
		c, err := f.floor(ctx, done, n)
		if err != nil {
			return err
		}
		git.add(c)
		done += n
		if err := os.RemoveAll(f.log); err != nil {
			return err
		}
	}
	name := fmt.Sprintf("%d machines, %d projects, %d issues waiting: ", fleetMachines, fleetProjects, waiting)
	b.out.add(name+"time per issue", fleet.elapsed.per(n), git.elapsed.per(n), "1.25")
	b.out.add(name+"CPU per issue", fleet.cpu.per(n), git.cpu.per(n), "")
	return nil
}

// measureAgents measures the time in which the programs run n agents.
func (f fleetScene) measureAgents(n int, serves bool, into *samples, programs ...*exec.Cmd) error {
	elapsed, cpu, err := f.timeAgents(n, serves, programs...)
	into.add(cost{elapsed: elapsed, cpu: cpu})
	return errors.Join(err, os.RemoveAll(f.log))
}

// machine measures one machine with n issues of one project: a fleet of one compared with a plain sweep, and the overhead of
// the queue per issue.
func (b *bench) machine(ctx context.Context, n int, d *databases) error {
	var one, alone, queue samples
	for round := range b.rounds {
		b.note("one machine with %d issues, round %d of %d", n, round+1, b.rounds)
		server, err := b.oneMachine(ctx, n, d, &one, &alone)
		if err != nil {
			return err
		}
		queue.elapsed = append(queue.elapsed, one.elapsed[round]-alone.elapsed[round])
		queue.cpu = append(queue.cpu, one.cpu[round]-alone.cpu[round]+float64(server))
	}
	b.out.add("1 machine through the fleet beside a sweep: time per issue", one.elapsed.per(n), alone.elapsed.per(n), "1.2")
	b.out.add("1 machine through the fleet beside a sweep: CPU per issue", one.cpu.per(n), alone.cpu.per(n), "1.2")
	b.out.add("what the queue adds to an issue: time", queue.elapsed.per(n), nil, "10 ms")
	b.out.add("what the queue adds to an issue: CPU, with the server's", queue.cpu.per(n), nil, "10 ms")
	return nil
}

// oneMachine measures once and returns the CPU time of the database server.
func (b *bench) oneMachine(ctx context.Context, n int, d *databases, one, alone *samples) (server time.Duration, err error) {
	f, err := b.newFleetScene(ctx, 1, 2, n+1)
	if err != nil {
		return 0, err
	}
	where, err := d.database(ctx)
	if err != nil {
		return 0, err
	}
	served, err := b.serve(ctx, f, where, 0, parallel, f.projects[0])
	if err != nil {
		return 0, err
	}
	before, err := d.server.CPU()
	if err != nil {
		return 0, err
	}
	if err := f.measureAgents(n, true, one, served); err != nil {
		return 0, err
	}
	after, err := d.server.CPU()
	if err != nil {
		return 0, err
	}
	sweep := f.commandOn(ctx, 0, b.ralph, "work", "--repo="+f.clone(0, f.projects[1]), "--agent=command", "--sandbox=none",
		"--agent-command=sh -c "+quote(noChangeAgent), fmt.Sprintf("--parallel=%d", parallel))
	if err := f.measureAgents(n, false, alone, sweep); err != nil {
		return 0, err
	}
	return after - before, os.RemoveAll(f.dir)
}
