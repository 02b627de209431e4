package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// apart returns the start of a command line that runs ralph as if on another machine: with its own host name, processes and
// network. When the first program dies, all its processes do.
func apart(name, program string) []string {
	argv := []string{"unshare", "--fork", "--kill-child", "--pid", "--mount-proc", "--net", "--uts"}
	if os.Geteuid() != 0 {
		argv = append(argv, "--user", "--map-root-user")
	}
	return append(argv, "sh", "-c", `hostname "$0" && { "$@" & wait $!; }`, name, program)
}

// Three machines with clocks ten minutes apart, each with its own network, processes and connection to the database, work two
// projects. Machines and the database are killed, connections are cut for longer than a lease, with and without an error. In the end
// each issue has been published exactly once, and there were never more runs than allowed. FLEET_ISSUES sets the number of issues.
func TestFleetSoak(t *testing.T) {
	t.Parallel()
	issues := soakNumber(t, "FLEET_ISSUES", 0) / 2
	if issues == 0 {
		t.Skip("make soak runs it, or FLEET_ISSUES=N")
	}
	check := apart("m0", "true")
	if out, err := exec.CommandContext(t.Context(), check[0], check[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("this kernel has no namespaces for us: %v: %s", err, out)
	}
	f := newFleetScene(t, issues)
	program := shiftedRalph(t)
	for n, m := range f.machines {
		m.program, m.gate = apart(m.name, program), newGate(t, f.server.Folder())
		m.env = []string{shiftVariable + "=" + strconv.Itoa((n-1)*600)}
	}
	f.startAll(t)
	cut := 0
	faults := []func(){
		func() { cut += f.restart(t, f.planner(t)) },
		func() { cut += f.restart(t, f.other(t)) },
		func() {
			if err := f.server.Kill(); err != nil {
				t.Fatal(err)
			}
			f.begin(t)
		},
		func() { f.away(t, f.planner(t), (*gate).cut) },
		func() { f.away(t, f.other(t), (*gate).silence) },
		func() {
			if err := f.server.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			await(t, "the runs that are on to end without the database", func() bool { return len(on(f.log(t))) == 0 })
			f.begin(t)
		},
		func() { cut += f.restart(t, f.planner(t)) },
	}
	for _, fault := range faults {
		f.more(t, 2*issues/(2*len(faults)))
		fault()
	}
	f.finish(t, issues, cut)
}

// other returns a machine that does not plan the shop.
func (f *fleetScene) other(t *testing.T) *fleetMachine {
	t.Helper()
	planner := f.planner(t)
	for _, m := range f.machines {
		if m != planner {
			return m
		}
	}
	panic("there are three")
}

// restart kills a machine, lets the others continue without it, and starts it again.
func (f *fleetScene) restart(t *testing.T, m *fleetMachine) (cut int) {
	t.Helper()
	t.Logf("%s is killed", m.name)
	cut = f.kill(t, m)
	f.more(t, 2)
	f.start(t, m)
	return cut
}

// begin starts the database again.
func (f *fleetScene) begin(t *testing.T) {
	t.Helper()
	await(t, "the database to start", func() bool { return f.server.Start(t.Context()) == nil })
}

// away breaks a machine's connections until all its leases have expired and other machines have worked.
func (f *fleetScene) away(t *testing.T, m *fleetMachine, take func(*gate)) {
	t.Helper()
	t.Logf("%s loses the database", m.name)
	take(m.gate)
	await(t, m.name+" to count as dead", func() bool {
		return ask[int](t, f, fmt.Sprintf("SELECT count(*) FROM ralph_machine WHERE name = '%s' AND expires_at > now()", m.name)) == 0
	})
	f.more(t, 2)
	m.gate.heal()
	await(t, m.name+" to be back", func() bool {
		return ask[int](t, f, fmt.Sprintf("SELECT count(*) FROM ralph_machine WHERE name = '%s' AND expires_at > now()", m.name)) == 1
	})
}
