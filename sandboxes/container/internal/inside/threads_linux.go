package inside

import (
	"runtime"
	"sync"
)

// processors is the GOMAXPROCS of the helpers, which only copy bytes.
const processors = 2

// threads is more than the number of helper goroutines that ever block in system calls at the same time.
const threads = processors + 10

// startThreads starts all threads that the program will ever need. They count for the container's process limit: if a
// command has exhausted that, the Go runtime cannot start another thread, and crashes.
func startThreads() {
	runtime.GOMAXPROCS(processors)
	var started sync.WaitGroup
	leave := make(chan struct{})
	started.Add(threads)
	for range threads {
		go func() {
			runtime.LockOSThread() // makes the runtime start another thread
			started.Done()
			<-leave
			runtime.UnlockOSThread() // the thread stays for other goroutines
		}()
	}
	started.Wait()
	close(leave)
}
