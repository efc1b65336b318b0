// Package scale shows an object as its scale: the number of its replicas, in the form of autoscaling/v1 that all
// kinds have in common.
//
//	object ──Layout──▶ JSON of its scale ──▶ kubectl scale, autoscalers
//	   ▲                                          │
//	   └─Set─── [Object] ◀─Read─── body ◀─────────┘
//
// Where an object has the number, only the [Functions] of its kind know. An apply has to know which fields these
// are: those that [Differing] finds between the object with one number and with another.
package scale
