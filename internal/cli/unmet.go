package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/sandboxes"
)

// unmet refuses a request that the sandbox has no means for. Left out in silence, a limit or an allow-list would be believed
// to hold. What a file says for its own sandbox is no request where somebody has chosen another one by hand: a warning names
// it.
func (p *parts) unmet(provider sandboxes.Provider) (warnings []string, err error) {
	if p.looks {
		return nil, nil
	}
	name, can, container := provider.Name(), provider.Capabilities(), slices.Contains(engines(), provider.Name())
	isolated := can.Isolated()
	for _, key := range config.KeyNames() {
		missing := ""
		switch key {
		case "memory-mb", "cpus", "pids", "scratch-mb":
			switch {
			case !isolated:
				missing = "holds no limits"
			case key == "scratch-mb" && name == "sbx":
				missing = "holds no limit of scratch space"
			}
		case "mounts":
			if !isolated {
				missing = "shows all of this host"
			}
		case "allow", "allow-private":
			if !can.Egress && !can.OwnEgress { // also containers with a network of their own
				missing = "lets every connection through"
			}
		case "sandbox-show":
			if isolated && !showsHost(provider) {
				missing = "shows folders of this host by --mount alone"
			}
		case "image":
			if !container && name != "sbx" {
				missing = "has no images"
			}
		default:
			if strings.HasPrefix(key, "container-") && !container {
				missing = "has no containers"
			}
		}
		switch {
		case missing == "" || !p.loaded.Asked(key):
		case byHand(p.loaded.Origin("sandbox")) && !byHand(p.loaded.Origin(key)) && slices.Contains([]string{"allow", "allow-private", "sandbox-show"}, key):
			warnings = append(warnings, fmt.Sprintf("%s does not count: sandbox %s %s", p.loaded.Origin(key).Name(key), name, missing))
		default:
			return nil, p.wrong(key, fmt.Errorf("sandbox %s %s; leave it out, or choose another with --sandbox", name, missing))
		}
	}
	return warnings, nil
}

func byHand(o config.Origin) bool {
	return o.Source == config.FromFlag || o.Source == config.FromEnvironment
}
