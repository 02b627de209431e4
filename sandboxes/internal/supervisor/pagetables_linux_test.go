package supervisor

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Sparse reads need page tables but no pages, because the kernel maps its zero page everywhere. The page tables count.
func TestPageTablesCount(t *testing.T) {
	t.Parallel()
	const size, step, table = 16 << 30, 2 << 20, 4 << 10
	before := map[string]int64{"roughly": fullUse(os.Getpid()).size, "exactly": proportionalUse(os.Getpid()).size}
	area, err := unix.Mmap(-1, 0, size, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(area) }()
	if err := unix.Madvise(area, unix.MADV_NOHUGEPAGE); err != nil {
		t.Fatal(err)
	}
	sum := byte(0)
	for at := 0; at < size; at += step {
		sum += area[at]
	}
	if sum != 0 {
		t.Fatal(sum)
	}
	const want = size / step * table
	for name, now := range map[string]int64{"roughly": fullUse(os.Getpid()).size, "exactly": proportionalUse(os.Getpid()).size} {
		if got := now - before[name]; got < want/2 {
			t.Errorf("%s: %d bytes more, want about %d", name, got, want)
		}
	}
}
