// Package parking decides which agent of a chain does the work, and how many runs it may do at once.
//
// A [Lot] keeps which agents are unavailable, and until when. [Turns] is one run's way through the chain. A [Pace] adapts
// how many runs are worked at once to what the model service bears. None of them starts anything or looks at the clock.
package parking
