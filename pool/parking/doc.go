// Package parking decides which agent of a chain does the work, and how many runs an agent may do at a time.
//
// A [Lot] remembers which agents are unavailable and until when. [Turns] is the path of one run through the chain. A [Pace]
// adapts the number of concurrent runs to the capacity of the model service. The package starts nothing and does not read
// the clock.
package parking
