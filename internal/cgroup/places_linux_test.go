package cgroup

import "testing"

func FuzzParsePlaces(f *testing.F) {
	f.Add([]byte("4:memory:/a\n2:cpu,cpuacct:/\n0::/user.slice\n"),
		[]byte("35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n41 31 0:38 / /u rw - cgroup2 cgroup2 rw\n"))
	f.Add([]byte(":::\n"), []byte("- - -\n"))
	f.Fuzz(func(t *testing.T, groups, mounts []byte) {
		for name := range parsePlaces(groups, mounts) {
			if name != "" && name != "memory" && name != "cpu" && name != "pids" {
				t.Errorf("controller %q", name)
			}
		}
	})
}

func TestParsePlaces(t *testing.T) {
	t.Parallel()
	groups := "4:memory:/docker/x/y\n2:cpu,cpuacct:/\n8:pids:/elsewhere\n0::/user.slice/a.scope\n"
	mounts := "1 2 0:32 /docker/x /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n" +
		"1 2 0:33 / /sys/fs/cgroup/cpu,cpuacct rw shared:1 - cgroup cgroup rw,cpu,cpuacct\n" +
		"1 2 0:34 /other /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n" +
		"1 2 0:35 / /sys/fs/cgroup/unified rw - cgroup2 none rw\n1 2 0:36 / /tmp rw - tmpfs tmpfs rw\n"
	got := parsePlaces([]byte(groups), []byte(mounts))
	want := Places{
		"memory": {Dir: "/sys/fs/cgroup/memory/y"},
		"cpu":    {Dir: "/sys/fs/cgroup/cpu,cpuacct"},
		"":       {Dir: "/sys/fs/cgroup/unified/user.slice/a.scope", V2: true},
	}
	if len(got) != len(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for name, at := range want {
		if got[name] != at {
			t.Errorf("%q is at %+v, want %+v", name, got[name], at)
		}
	}
}
