package keys

import "github.com/ralph-pool/ralph/internal/cli/config/access"

// sandboxKeys returns the keys of the sandbox, its limits and its access to network and files.
func sandboxKeys() []Key {
	return []Key{
		{
			Name:       "sandbox",
			Help:       "where agents and checks run; auto: native; landlock is weaker; none is this host, without isolation",
			Default:    "auto",
			Registered: true,
			Guard:      Looser,
			Bound:      true,
			Levels:     [][]string{{"sbx"}, {"auto", "native", "docker", "podman"}},
			Use:        toMerge | toRun | toExec,
		},
		{
			Name:  "allow",
			Help:  "hosts that isolated runs may reach: HOST, *.DOMAIN or HOST:PORT",
			Kind:  Lines,
			Check: access.CheckAllow,
			Guard: Listed,
			Use:   toMerge | toRun | toExec,
		},
		{
			Name:  "allow-private",
			Help:  "hosts on this machine or a private network that isolated runs may reach, such as a company's registry",
			Kind:  Lines,
			Check: access.CheckAllow,
			Guard: Listed,
			Use:   toMerge | toRun | toExec,
		},
		{
			Name:  "agent-upstream",
			Help:  "address of the agent's model service; empty: the agent's own",
			Guard: Changed,
			Use:   toWork | toRun,
		},
		{
			Name:  "mounts",
			Help:  "host files shown inside: host=PATH,inside=PATH,readonly",
			Kind:  Lines,
			Check: access.CheckMount,
			Guard: Changed, // a mount may cover a part of another one, so fewer can show more
			Use:   toMerge | toRun | toExec,
		},
		{
			Name:  "sandbox-show",
			Help:  "more host folders that native and landlock sandboxes show, read-only",
			Kind:  Folders,
			Check: access.CheckShown,
			Guard: Listed,
			Use:   toMerge | toRun | toExec,
		},
		{
			Name:  "image",
			Help:  "image of docker, podman (see ralph image build) and sbx",
			Check: checkArgument,
			Guard: Ordinary,
			Use:   toMerge | toRun | toExec,
		},
		{
			Name:  "memory-mb",
			Help:  "memory of one run in MiB; 0: 4096",
			Kind:  Int,
			Least: 32,
			Guard: Above,
			Use:   toMerge | toRun | toExec,
		},
		{
			Name:  "cpus",
			Help:  "processors of one run; 0: 2",
			Kind:  Float,
			Least: 0.1, // engines refuse less than 0.01, and with that little a shell takes seconds to start
			Guard: Above,
			Use:   toMerge | toRun | toExec,
		},
		{
			Name:  "pids",
			Help:  "processes and threads of one run; 0: 1024",
			Kind:  Int,
			Least: 64, // with 32 a container's helper process cannot start its threads
			Guard: Above,
			Use:   toMerge | toRun | toExec,
		},
		{
			Name:  "scratch-mb",
			Help:  "scratch space of one run in MiB; 0: 2048",
			Kind:  Int,
			Guard: Above,
			Use:   toMerge | toRun | toExec,
		},
	}
}

// containerKeys returns the keys for docker and podman only.
func containerKeys() []Key {
	return []Key{
		{
			Name:  "container-user",
			Help:  "UID:GID in containers; empty: the worktree's owner",
			Guard: Changed,
			Use:   toMerge | toRun | toExec,
		},
		{
			Name:  "container-runtime",
			Help:  "such as runsc or kata; empty: the engine's",
			Check: checkArgument,
			Guard: Changed,
			Use:   toMerge | toRun | toExec,
		},
		{
			Name:    "container-files",
			Help:    "how files get into containers; copy: for an engine that cannot see this host's files",
			Default: "bind",
			Choices: []string{"bind", "copy"},
			Guard:   Ordinary,
			Use:     toMerge | toRun | toExec,
		},
		{
			Name: "container-unbounded",
			Help: "accept an engine that cannot limit memory, CPU and processes, " +
				"such as rootless podman without delegated cgroups",
			Kind:   Bool,
			Guard:  Looser,
			Bound:  true,
			Levels: [][]string{{"false"}},
			Use:    toMerge | toRun | toExec,
		},
		{
			Name:    "container-network",
			Help:    "network of containers; none: only the egress proxy; any other is not filtered",
			Default: "none",
			Check:   checkArgument,
			Guard:   Looser,
			Bound:   true,
			Levels:  [][]string{{"none"}},
			Use:     toMerge | toRun | toExec,
		},
		{
			Name:  "container-userns",
			Help:  "user namespace of containers, such as auto; host: weaker isolation; empty: keep-id under rootless podman",
			Check: checkArgument,
			Guard: Changed,
			Use:   toMerge | toRun | toExec,
		},
		{
			Name:    "container-selinux",
			Help:    "private and shared relabel mounted files (podman); disable: weaker isolation; empty: no label",
			Choices: []string{"disable", "private", "shared"},
			Guard:   Changed,
			Use:     toMerge | toRun | toExec,
		},
		{
			Name:  "container-groups",
			Help:  "extra groups of commands in containers; weaker isolation",
			Kind:  Names,
			Check: checkArgument,
			Guard: Listed,
			Use:   toMerge | toRun | toExec,
		},
		{
			Name:  "container-devices",
			Help:  "host devices shown in containers, such as /dev/kvm; weaker isolation",
			Kind:  Names,
			Check: checkArgument,
			Guard: Listed,
			Use:   toMerge | toRun | toExec,
		},
		{
			Name:  "container-workdir",
			Help:  "path of the worktree in containers; empty: the same as outside",
			Guard: Ordinary,
			Use:   toMerge | toRun | toExec,
		},
		{
			Name:  "container-keep",
			Help:  "keep stopped containers, with the label ralph.run",
			Kind:  Bool,
			Guard: Changed,
			Use:   toMerge | toRun | toExec,
		},
		{
			Name:  "container-args",
			Help:  "arguments added to the engine's run command",
			Kind:  Lines,
			Guard: Changed,
			Use:   toMerge | toRun | toExec,
		},
	}
}
