package keys

import (
	"slices"
	"sync"
	"time"
)

// All is the table: flags, variables, the example file, `ralph config` and validation all come from it.
func All() []Key { return slices.Clone(table()) }

// Lookup finds a key by its name.
func Lookup(name string) (Key, bool) {
	keys := table()
	i := slices.IndexFunc(keys, func(k Key) bool { return k.Name == name })
	if i < 0 {
		return Key{}, false
	}
	return keys[i], true
}

// AllNames lists the names in the table's order.
func AllNames() []string {
	keys := table()
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.Name
	}
	return names
}

// table makes the keys once: every command of the program binds some of them at every start.
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

// groups are the keys below the headings they stand under. The default is the zero value where none is given.
func groups() []group {
	return []group{
		{"Which issues", issueKeys()},
		{"Where they live", trackerKeys()},
		{"Agent", agentKeys()},
		{"Checks and sandbox", slices.Concat(sandboxKeys(), containerKeys(), gateKeys(), proofKeys())},
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

// second is the Min of a duration that must be one at least.
const second = int64(time.Second)

// byAgent are the keys that choose the agent; see Key.Beside.
func byAgent() []string { return []string{"agent", "agent-command", "model"} }

// byGate is the key of the gate; see Key.Beside.
func byGate() []string { return []string{"gate"} }
