package e2e

import (
	"os"
	"strings"
	"testing"
)

// An issue that a person has stopped stays so on all machines of a fleet, each of which has its own copy of the backlog.
func TestFleetStop(t *testing.T) {
	t.Parallel()
	f := newFleetScene(t, 1)
	agent := strings.Replace(fleetAgent, "say begin\n", "say begin\n[ \"$RALPH_ISSUE_KEY\" != issue-01 ] || exec sleep 1000\n", 1)
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
	for _, m := range f.machines { // once it begins, the planner has looked at both
		m.clones["shop"].write(t, ".ralph/backlog/issue-02.md", "---\ntitle: Another\nlabels: [no-human]\n---\nDo it.\n")
	}
	await(t, "a run of another issue", func() bool { return begun("issue-02") == 1 })
	if n := ask[int](t, f, "SELECT count(*) FROM river_job WHERE args ->> 'project' = 'shop' AND args ->> 'key' = '"+key+"'"); n != 1 || begun(key) != 1 {
		t.Errorf("what was stopped was planned %d times, and has begun %d times", n, begun(key))
	}
}
