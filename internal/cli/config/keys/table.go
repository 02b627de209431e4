package keys

import (
	"slices"
	"sync"
	"time"
)

// All returns the table. Flags, variables, the example file, `ralph config` and validation are derived from it.
func All() []Key { return slices.Clone(table()) }

// Lookup returns the key with this name.
func Lookup(name string) (Key, bool) {
	keys := table()
	i := slices.IndexFunc(keys, func(k Key) bool { return k.Name == name })
	if i < 0 {
		return Key{}, false
	}
	return keys[i], true
}

// AllNames returns the names in the order of the table.
func AllNames() []string {
	keys := table()
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.Name
	}
	return names
}

// table builds the keys once, because every start of ralph binds some of them.
//
//nolint:gochecknoglobals // never written
var table = sync.OnceValue(func() []Key {
	var keys []Key
	for _, g := range groups() {
		for _, k := range g.keys {
			k.Group = g.title
			if k.Default == nil {
				k.Default = k.Kind.zero()
			}
			keys = append(keys, k)
		}
	}
	return keys
})

type group struct {
	title string
	keys  []Key
}

// groups returns the keys by heading. table fills in missing defaults.
func groups() []group {
	return []group{
		{"Which issues", issueKeys()},
		{"Where they live", trackerKeys()},
		{"Agent", agentKeys()},
		{"Checks and sandbox", slices.Concat(sandboxKeys(), containerKeys(), gateKeys(), evidenceKeys())},
		{"Loop", loopKeys()},
		{"Git", slices.Concat(gitKeys(), requestKeys())},
		{"Time", timeKeys()},
		{"Service", serviceKeys()},
		{"Notifications", notificationKeys()},
		{"Retries and budget", slices.Concat(retryKeys(), budgetKeys(), spendingKeys())},
		{"Labels ralph sets", labelKeys()},
		{"Fleet", fleetKeys()},
		{"This host", hostKeys()},
	}
}

// second is the Min of durations of at least a second.
const second = int64(time.Second)

// byAgent lists the keys that choose the agent; see Key.Beside.
func byAgent() []string { return []string{"agent", "agent-command", "model"} }

// byGate lists the key of the gate; see Key.Beside.
func byGate() []string { return []string{"gate"} }
