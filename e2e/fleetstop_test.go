package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An issue that a person has stopped stays stopped on all machines of a fleet, although each has its own copy of the backlog.
func TestFleetStop(t *testing.T) {
	t.Parallel()
	f := newFleetScene(t, 1)
	agent := strings.Replace(fleetAgent, "say begin\n", "say begin\nwhile [ $RALPH_ISSUE_KEY = issue-01 ] && [ ! -e \"$E2E_LOG.over\" ]; do sleep 0.1; done\n", 1)
	if err := os.WriteFile(f.path("agent"), []byte(agent), 0o700); err != nil {
		t.Fatal(err)
	}
	begun := func(key string) (n int) {
		for _, l := range f.log(t) {
			if l.what == "begin" && l.project == "shop" && l.key == key {
				n++
			}
		}
		return n
	}
	f.startAll(t)
	t.Cleanup(func() { _ = os.WriteFile(f.path("log.over"), nil, 0o600) }) // otherwise the machines would wait for their agents
	asker := &fleetMachine{name: "asker", folder: f.machines[0].folder}
	others := f.remotes["shop"].clone(t)
	const key = "issue-01"
	await(t, "a run", func() bool { return begun(key) == 1 })
	stop := f.launch(t, asker, "stop", "--fleet-name=shop", "--repo", string(others), key)
	if status := stop.end(t); status != 0 || !strings.Contains(stop.out.String(), "Asked the machine") {
		t.Fatalf("ralph stop: status %d\n%s", status, stop.out.String())
	}
	await(t, "the run to end", func() bool {
		return ask[int](t, f, "SELECT count(*) FROM ralph_run WHERE project = 'shop' AND record::json -> 'verdict' ->> 'outcome' = 'interrupted'") == 1
	})
	planned := func() int {
		return ask[int](t, f, "SELECT count(*) FROM river_job WHERE args ->> 'project' = 'shop' AND args ->> 'key' = '"+key+"'")
	}
	before := planned() // on a busy machine a row may have been replaced before it started

	for _, m := range f.machines { // when issue-02 starts, the planner has seen both issues
		m.clones["shop"].write(t, ".ralph/backlog/issue-02.md", "---\ntitle: Another\nlabels: [no-human]\n---\nDo it.\n")
	}
	await(t, "a run of another issue", func() bool { return begun("issue-02") == 1 })
	if n := planned() - before; n != 0 || begun(key) != 1 {
		t.Errorf("what was stopped was planned %d times more, and has begun %d times", n, begun(key))
	}
}

// A machine takes no more rows of a project than it can start, even if its limit for all projects is lower or changes.
func TestFleetParallelOfAllProjects(t *testing.T) {
	t.Parallel()
	f := newFleetScene(t, 1)
	m := f.machines[0]
	list, err := os.ReadFile(filepath.Join(string(m.folder), "serve.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for total := 1; total <= 3; total++ {
		m.folder.write(t, "serve.yaml", fmt.Sprintf("parallel: %d\n%s", total, list))
		if total == 1 {
			f.start(t, m)
		}
		want := min(total, 2)
		await(t, fmt.Sprintf("the machine to take %d of %d", want, total), func() bool {
			return ask[int](t, f, "SELECT coalesce(max((projects ->> 'shop')::integer), 0) FROM ralph_machine") == want
		})
	}
}
