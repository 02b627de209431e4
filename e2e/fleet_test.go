package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/ralph-pool/ralph/pool/fleet/fleettest"
	"github.com/ralph-pool/ralph/pool/journal"
)

// fleetAgent logs "begin" or "end", machine, project and issue, each line in one write.
const fleetAgent = `#!/bin/sh
cat >/dev/null
say() { echo "$1 $E2E_MACHINE $(cat name) $RALPH_ISSUE_KEY" >> "$E2E_LOG"; }
say begin
for n in 1 2 3 4 5 6 7 8; do git status >/dev/null; done # it takes a moment
mkdir -p done
echo "$RALPH_ISSUE_KEY" > "done/$RALPH_ISSUE_KEY.txt"
git add --all
git commit --quiet --message "Do $RALPH_ISSUE_KEY"
say end
echo "<promise>COMPLETE</promise>"
`

// Limits of fleetScene's projects.
const (
	fleetPerProject = 3 // runs per project on all machines
	fleetPerAccount = 4 // runs of both projects
)

// fleetScene is three machines, two projects and a database.
type fleetScene struct {
	scene
	server   *fleettest.Server
	database string
	remotes  map[string]repository
	machines []*fleetMachine
	issues   int // total of all projects
}

type fleetMachine struct {
	name    string
	folder  repository
	program []string // nil: the usual ralph
	env     []string // in addition to the usual
	gate    *gate    // nil: connects directly to the database
	clones  map[string]repository
	*ralph  // nil: not running
}

// is reports whether the id in the database is that of the machine's running ralph process. For a machine with its own PID
// namespace only the name is compared.
func (m *fleetMachine) is(id string) bool {
	name, pid, _ := strings.Cut(id, "/")
	pid, _, _ = strings.Cut(pid, "/")
	return m.ralph != nil && (name == m.name || m.program == nil && pid == strconv.Itoa(m.Process.Pid))
}

// newFleetScene creates machines for two projects with the same number of issues each.
func newFleetScene(t *testing.T, issues int) *fleetScene {
	t.Helper()
	server, end, err := fleettest.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	f := &fleetScene{scene: newScene(t, "issues: {}"), server: server, database: server.Database(t), remotes: map[string]repository{}, issues: 2 * issues}
	if err := os.WriteFile(f.path("agent"), []byte(fleetAgent), 0o700); err != nil {
		t.Fatal(err)
	}
	sources := map[string]repository{}
	for _, project := range []string{"shop", "site"} {
		r := newRepository(t)
		r.write(t, "name", project)
		r.backlog(t, issues)
		f.remotes[project], sources[project] = newRemote(t, r), r
	}
	for n := range 3 {
		m := &fleetMachine{name: fmt.Sprint("m", n), folder: repository(t.TempDir()), clones: map[string]repository{}}
		var text strings.Builder
		text.WriteString("projects:\n")
		for project, remote := range f.remotes {
			m.clones[project] = remote.clone(t)
			fmt.Fprintf(&text, "  - {repo: %s, name: %s, parallel: 2, poll: 2s, claim-ttl: 10s, fleet-parallel: %d, fleet-account-parallel: %d}\n",
				m.clones[project], project, fleetPerProject, fleetPerAccount)
		}
		m.folder.write(t, "serve.yaml", text.String())
		f.machines = append(f.machines, m)
	}
	if status := f.launch(t, f.machines[0], "fleet", "migrate").end(t); status != 0 {
		t.Fatalf("ralph fleet migrate: status %d", status)
	}
	return f
}

func (f *fleetScene) launch(t *testing.T, m *fleetMachine, args ...string) *ralph {
	t.Helper()
	database := f.database
	if m.gate != nil {
		database = f.server.Through(m.gate.dir, database)
	}
	env := f.env(append([]string{
		"E2E_MACHINE=" + m.name, f.markOf(m), "E2E_LOG=" + f.path("log"), "RALPH_AGENT_COMMAND=" + f.path("agent"), "XDG_STATE_HOME=" + filepath.Join(string(m.folder), "state"),
		"RALPH_DATABASE=" + database, "RALPH_TEST_FLEET_LIFE=6s",
	}, m.env...)...)
	if m.program != nil {
		return launchAs(t, m.program, m.folder, env, args...)
	}
	return launch(t, m.folder, env, args...)
}

// markOf is in the environment of everything that this machine starts, and of nothing that another test's machines start.
func (f *fleetScene) markOf(m *fleetMachine) string { return "E2E_PLACE=" + f.path(m.name) }

// signal sends a signal to the machine's ralph process.
func (f *fleetScene) signal(t *testing.T, m *fleetMachine, s syscall.Signal) {
	t.Helper()
	if m.program == nil {
		_ = m.Process.Signal(s)
		return
	}
	for _, p := range processesWith(t, f.markOf(m)) {
		if strings.HasSuffix(p.args, " serve --listen none serve.yaml") && !strings.Contains(p.args, "unshare") && !strings.HasPrefix(p.args, "sh ") {
			_ = syscall.Kill(p.pid, s)
		}
	}
}

func (f *fleetScene) start(t *testing.T, m *fleetMachine) {
	t.Helper()
	m.ralph = f.launch(t, m, "serve", "--listen", "none", "serve.yaml")
}

// fleetLine is a line of the agents' log.
type fleetLine struct{ what, machine, project, key string }

func (f *fleetScene) log(t *testing.T) (out []fleetLine) {
	t.Helper()
	text, err := os.ReadFile(f.path("log"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		w := strings.Fields(line)
		if len(w) == 4 && strings.HasSuffix(line, "\n") {
			out = append(out, fleetLine{w[0], w[1], w[2], w[3]})
		}
	}
	return out
}

// ended counts the agents that have ended.
func (f *fleetScene) ended(t *testing.T) (n int) {
	t.Helper()
	for _, l := range f.log(t) {
		if l.what == "end" {
			n++
		}
	}
	return n
}

// more waits until n more agents have ended, or all issues are published.
func (f *fleetScene) more(t *testing.T, n int) {
	t.Helper()
	from := f.ended(t)
	await(t, fmt.Sprintf("%d more runs", n), func() bool { return f.ended(t) >= from+n || f.published(t) == f.issues })
}

// published counts the issues with a branch.
func (f *fleetScene) published(t *testing.T) (n int) {
	t.Helper()
	for _, r := range f.remotes {
		n += len(r.lines(t, "for-each-ref", "refs/heads/ralph"))
	}
	return n
}

// on returns the agents that have started and not ended, by machine, project and key.
func on(log []fleetLine) map[fleetLine]bool {
	open := map[fleetLine]bool{}
	for _, l := range log {
		at := fleetLine{machine: l.machine, project: l.project, key: l.key}
		if l.what == "begin" {
			open[at] = true
		} else {
			delete(open, at)
		}
	}
	return open
}

// kill takes a machine with an active agent down, with everything that runs there, and returns the number of runs cut off.
func (f *fleetScene) kill(t *testing.T, m *fleetMachine) (cut int) {
	t.Helper()
	busy := func() (n int) {
		for at := range on(f.log(t)) {
			if at.machine == m.name {
				n++
			}
		}
		return n
	}
	await(t, m.name+" to have a run", func() bool { return busy() > 0 })
	_ = m.Process.Kill()
	_ = m.Wait()
	await(t, m.name+" to be down", func() bool {
		left := processesWith(t, f.markOf(m))
		for _, p := range left {
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
		return len(left) == 0
	})
	t.Logf("%s: %s", m.name, m.out.String())
	m.ralph = nil
	file, err := os.OpenFile(f.path("log"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for at := range on(f.log(t)) {
		if at.machine == m.name {
			fmt.Fprintf(file, "cut %s %s %s\n", at.machine, at.project, at.key)
		}
	}
	for _, l := range f.log(t) { // includes runs whose agent had ended
		if _, err := f.remotes[l.project].try("rev-parse", "--verify", "--quiet", "refs/heads/ralph/"+l.key); err != nil && l.what == "begin" && l.machine == m.name {
			cut++
		}
	}
	return cut
}

// ask queries the database for one value.
func ask[T any](t *testing.T, f *fleetScene, sql string) (v T) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // works after the test has failed, too
	c, err := pgx.Connect(ctx, f.database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	if err := c.QueryRow(ctx, sql).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// planner returns the machine that plans the shop.
func (f *fleetScene) planner(t *testing.T) *fleetMachine {
	t.Helper()
	var found *fleetMachine
	await(t, "somebody to plan", func() bool { // the lease of a dead one must expire first
		holder := ask[string](t, f, "SELECT coalesce(max(holder), '') FROM ralph_lease WHERE scope = 'planner of shop'")
		for _, m := range f.machines {
			if m.is(holder) {
				found = m
			}
		}
		return found != nil
	})
	return found
}

// Three machines work two projects. The planning machine dies, a working one dies, the database crashes. In the end each
// issue has been published exactly once, and there were never more runs than allowed.
func TestFleet(t *testing.T) {
	t.Parallel()
	const issues = 14
	f := newFleetScene(t, issues)
	f.startAll(t)
	f.more(t, 4)
	planner := f.planner(t)
	cut := f.kill(t, planner)
	f.more(t, 4)
	f.start(t, planner)
	planner = f.planner(t)
	for _, m := range f.machines {
		if m != planner {
			cut += f.kill(t, m)
			f.more(t, 3)
			f.start(t, m)
			break
		}
	}
	f.more(t, 3)
	if err := f.server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, "the runs that are on to end without the database", func() bool { return len(on(f.log(t))) == 0 })
	if err := f.server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	stale := ask[string](t, f, "SELECT coalesce(max(expires_at), now())::text FROM ralph_lease") // includes runs that ended meanwhile
	await(t, "the leases that could not be given back to expire", func() bool { return ask[bool](t, f, "SELECT now() > '"+stale+"'") })
	f.finish(t, issues, cut)
}

// startAll starts the machines, and shows their output if the test fails.
func (f *fleetScene) startAll(t *testing.T) {
	t.Helper()
	for _, m := range f.machines {
		f.start(t, m)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, table := range []string{"river_job r WHERE state NOT IN ('completed', 'discarded', 'cancelled')", "ralph_lease r", "ralph_machine r", "river_leader r"} {
				t.Log(ask[string](t, f, "SELECT now()::text || coalesce(string_agg(E'\n' || r::text, ''), '') FROM "+table))
			}
			for _, m := range f.machines {
				if m.ralph != nil && m.ProcessState == nil {
					f.signal(t, m, syscall.SIGTERM)
					_ = m.Wait()
					t.Logf("%s: %s", m.name, m.out.String())
				}
			}
		}
	})
}

// finish waits until all issues are done, stops the machines, and checks the results.
func (f *fleetScene) finish(t *testing.T, issues, cut int) {
	t.Helper()
	for n := f.published(t); n < f.issues; n = f.published(t) {
		await(t, fmt.Sprintf("more than %d issues to be published", n), func() bool { return f.published(t) > n })
	}
	const open = "FROM river_job r WHERE state NOT IN ('completed', 'discarded', 'cancelled')"
	await(t, "all rows to be over", func() bool { return ask[int](t, f, "SELECT count(*) "+open) == 0 })
	const history = "SELECT count(%s) FROM ralph_run WHERE record::json -> 'verdict' ->> 'outcome' = 'succeeded'"
	await(t, "all records to be written", func() bool { return ask[int](t, f, fmt.Sprintf(history, "DISTINCT (project, key)")) == 2*issues })
	f.totals(t, issues)
	for _, m := range f.machines {
		f.signal(t, m, syscall.SIGTERM)
	}
	for _, m := range f.machines {
		if status := m.end(t); status != 0 {
			t.Errorf("%s ends with status %d", m.name, status)
		}
	}
	f.check(t, issues, cut)
	if all, distinct := ask[int](t, f, fmt.Sprintf(history, "*")), ask[int](t, f, fmt.Sprintf(history, "DISTINCT (project, key)")); all != 2*issues || distinct != all {
		t.Errorf("the history has %d runs that succeeded, of %d issues; want %d", all, distinct, 2*issues)
	}
	noneLeft(t, f.mark)
	if n := ask[int](t, f, "SELECT (SELECT count(*) FROM ralph_machine WHERE expires_at > now()) + (SELECT count(*) FROM ralph_lease WHERE expires_at > now())"); n > 0 {
		t.Errorf("%d machines and leases are left", n)
	}
}

// succeeded returns the number of successful runs on all machines according to `ralph cost`.
func (f *fleetScene) succeeded(t *testing.T, asker *fleetMachine) (runs int) {
	t.Helper()
	cost := f.launch(t, asker, "cost", "--json", "--by=outcome", "--fleet-name=shop", "--repo", string(asker.clones["shop"]))
	if status := cost.end(t); status != 0 {
		t.Errorf("ralph cost: status %d", status)
	}
	var sums struct {
		Groups []struct {
			Group string
			Runs  int
		}
	}
	if err := json.Unmarshal(cost.out.Bytes(), &sums); err != nil {
		t.Error(err)
	}
	for _, g := range sums.Groups {
		if g.Group == string(journal.Succeeded) {
			runs = g.Runs
		}
	}
	return runs
}

// totals checks the totals of all runs that a machine reports.
func (f *fleetScene) totals(t *testing.T, issues int) {
	t.Helper()
	asker := &fleetMachine{name: "asker", folder: f.machines[0].folder, clones: f.machines[0].clones}
	await(t, "the records of all runs, which machines send a moment after their end", func() bool { return f.succeeded(t, asker) == issues })
	status := f.launch(t, asker, "status", "--json", "--fleet-name=shop", "--repo", string(asker.clones["shop"]))
	if code := status.end(t); code != 0 || !strings.Contains(status.out.String(), `"running_seconds"`) {
		t.Errorf("ralph status: status %d", code)
	}
}

// check checks the log and the remotes. cut is the number of runs that died with their machine.
func (f *fleetScene) check(t *testing.T, issues, cut int) {
	t.Helper()
	begun, total := map[string]int{}, 0
	runs, most, all, mostOfAll := map[string]int{}, map[string]int{}, 0, 0
	for _, l := range f.log(t) {
		if l.what != "begin" {
			runs[l.project]--
			all--
			continue
		}
		begun[l.project+"/"+l.key]++
		total++
		runs[l.project]++
		all++
		most[l.project], mostOfAll = max(most[l.project], runs[l.project]), max(mostOfAll, all)
	}
	if total > 2*issues+cut {
		t.Errorf("%d agents for %d issues, of which %d died", total, 2*issues, cut)
	}
	if mostOfAll > fleetPerAccount {
		t.Errorf("%d runs at the same time used the account, at most %d may", mostOfAll, fleetPerAccount)
	}
	t.Logf("at the same time at most: %v, %d of both; %d agents, %d of them died", most, mostOfAll, total, cut)
	for project, r := range f.remotes {
		if most[project] > fleetPerProject {
			t.Errorf("%s: %d runs at the same time, at most %d may be", project, most[project], fleetPerProject)
		}
		for i := range issues {
			key := fmt.Sprintf("issue-%02d", i+1)
			if begun[project+"/"+key] == 0 {
				t.Errorf("%s/%s was never worked", project, key)
			}
			if n := r.commits(t, "ralph/"+key); n != 1 {
				t.Errorf("%s/%s: %d commits on its branch", project, key, n)
			}
		}
		if held := strings.Join(r.lines(t, "for-each-ref", "--format=%(contents)", "refs/ralph/claims"), "\n"); strings.Contains(held, `"expires"`) {
			t.Errorf("%s: claims are left:\n%s", project, held)
		}
	}
}
