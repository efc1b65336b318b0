package objectmeta

import (
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// longestGrace is the longest grace period, in seconds, that a time.Duration can hold
// (292 years). The time of deletion lies no further ahead; the grace period is stored as
// requested.
const longestGrace = int64(math.MaxInt64 / time.Second)

// GracePeriod returns the grace period of a deletion in seconds, zero for none. asked is the one that the deletion
// asks for, nil for none, and rule is that of the kind. An object that is already being deleted keeps its
// period, unless the deletion asks for a shorter one.
func GracePeriod(m metav1.Object, asked *int64, rule func(asked *int64) (seconds int64, graceful bool)) int64 {
	var present *int64
	if m.GetDeletionTimestamp() != nil {
		if present = m.GetDeletionGracePeriodSeconds(); present == nil {
			return 0
		}
		if *present == 0 || asked == nil {
			return *present
		}
	}
	seconds, graceful := rule(asked)
	switch {
	case !graceful || seconds < 0:
		return 0
	case present != nil:
		return min(seconds, *present)
	}
	return seconds
}

// Mark sets the time of deletion and the grace period of an object. If it has them already, the period can only
// become shorter.
func Mark(m metav1.Object, seconds int64, now metav1.Time) {
	at := metav1.NewTime(now.Add(graceDuration(seconds)))
	if end := m.GetDeletionTimestamp(); end == nil {
		if n := m.GetGeneration(); n > 0 { // else the kind has none
			m.SetGeneration(n + 1)
		}
	} else {
		before := m.GetDeletionGracePeriodSeconds()
		if before == nil || *before <= seconds {
			return
		}
		at, seconds = shortened(end, *before, seconds, now)
	}
	m.SetDeletionTimestamp(&at)
	m.SetDeletionGracePeriodSeconds(&seconds)
}

// shortened returns the time of deletion if its grace period, which ends at end, is to have only
// the given seconds: it counts from the first deletion. The time is never in the past, and a
// period that is over has a second left, so that the object is still deleted in the end.
func shortened(end *metav1.Time, before, seconds int64, now metav1.Time) (at metav1.Time, left int64) {
	at = metav1.NewTime(end.Add(graceDuration(seconds) - graceDuration(before)))
	if at.Before(&now) {
		return now, min(seconds, 1)
	}
	return at, seconds
}

// graceDuration returns a grace period, or the longest one that can be counted if that is shorter.
func graceDuration(seconds int64) time.Duration {
	return time.Duration(min(seconds, longestGrace)) * time.Second
}

// ofPolicy are the finalizers by which a garbage collector knows what is to become of an object's dependents.
// Background has none: the collector deletes them once the object is gone.
var ofPolicy = map[metav1.DeletionPropagation]string{
	metav1.DeletePropagationOrphan:     metav1.FinalizerOrphanDependents,
	metav1.DeletePropagationForeground: metav1.FinalizerDeleteDependents,
}

// Propagated returns the finalizers of an object that is deleted by a policy for its dependents: that of the
// policy takes the place of those of others. "" is no policy, and changes nothing.
func Propagated(finalizers []string, policy metav1.DeletionPropagation) []string {
	if policy == "" {
		return finalizers
	}
	wanted := ofPolicy[policy]
	kept := slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool {
		return f != wanted && (f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents)
	})
	if wanted != "" && !slices.Contains(kept, wanted) {
		kept = append(kept, wanted)
	}
	return kept
}

// InGrace reports whether an object is being deleted and its grace period is not over.
func InGrace(m metav1.Object) bool {
	grace := m.GetDeletionGracePeriodSeconds()
	return m.GetDeletionTimestamp() != nil && grace != nil && *grace != 0
}

// MayBeRemoved reports whether an object is being deleted and nothing keeps it any longer.
func MayBeRemoved(m metav1.Object) bool {
	return m.GetDeletionTimestamp() != nil && len(m.GetFinalizers()) == 0 && !InGrace(m)
}
