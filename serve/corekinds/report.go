package corekinds

import (
	"context"
	"slices"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
)

// reportAgainAfter is how long a report is not repeated that another one has replaced. Servers that share storage may find
// different errors: each would otherwise replace what the other has written, at once and for ever.
const reportAgainAfter = 10 * time.Minute

// remains is why a namespace is still there: the kinds of which objects are left, and why some could not be deleted.
type remains struct{ left, failed string }

// report says in the status of a namespace why it is still there.
func (k *Kinds) report(ctx context.Context, o *engine.Object[core.Namespace], m *mark, left []string, failed error) error {
	r, now := remains{left: strings.Join(left, ", ")}, k.cfg.Host.Clock().Now()
	if failed != nil {
		r.failed = failed.Error()
	}
	if !m.mayReport(r, o.Value.Status.Conditions, now) {
		return nil
	}
	_, err := k.namespaces.UpdateStatus(ctx, o.Key, func(old *engine.Object[core.Namespace]) (core.Namespace, error) {
		n := old.Value
		if changed := r.conditions(n.Status.Conditions, metav1.NewTime(now)); changed != nil {
			n.Status.Conditions = changed
		}
		return n, nil
	}, registry.WriteOptions{UID: string(o.Value.UID)})
	if err == nil {
		m.reported, m.reportedAt = r, now
	}
	return orGone(err)
}

// mayReport reports whether the status is to be written, so that it says what remains. The write has the namespace looked
// at again at once, so one of other texts alone waits: an error may have another text each time.
func (m *mark) mayReport(r remains, before []core.NamespaceCondition, now time.Time) bool {
	after, ago := r.conditions(before, metav1.NewTime(now)), now.Sub(m.reportedAt)
	sameButTexts := slices.EqualFunc(before, after, func(a, b core.NamespaceCondition) bool { return a.Type == b.Type && a.Status == b.Status })
	switch {
	case after == nil, r == m.reported && ago < reportAgainAfter, sameButTexts && ago < longestPause:
		return false
	}
	return true
}

// conditions returns the conditions of a namespace of which that remains; nil if they are as they were.
func (r remains) conditions(before []core.NamespaceCondition, at metav1.Time) []core.NamespaceCondition {
	now := slices.Clone(before)
	remaining := core.NamespaceCondition{
		Type: core.NamespaceContentRemaining, Status: core.ConditionFalse, Reason: "ContentRemoved", Message: "All content successfully removed",
	}
	if r.left != "" {
		remaining.Status, remaining.Reason = core.ConditionTrue, "SomeResourcesRemain"
		remaining.Message = "Some resources are remaining: " + r.left
	}
	failure := core.NamespaceCondition{
		Type: core.NamespaceDeletionContentFailure, Status: core.ConditionFalse, Reason: "ContentDeleted",
		Message: "All content successfully deleted, may be waiting on finalization",
	}
	if r.failed != "" {
		failure.Status, failure.Reason, failure.Message = core.ConditionTrue, "ContentDeletionFailed", r.failed
	}
	if changed := setCondition(&now, remaining, at); !setCondition(&now, failure, at) && !changed {
		return nil
	}
	return now
}

// setCondition sets a condition, and reports whether it differs from what was there. One that says that nothing is
// wrong is left out if there was none.
func setCondition(all *[]core.NamespaceCondition, c core.NamespaceCondition, at metav1.Time) (changed bool) {
	i := slices.IndexFunc(*all, func(o core.NamespaceCondition) bool { return o.Type == c.Type })
	c.LastTransitionTime = at
	switch {
	case i < 0 && c.Status == core.ConditionFalse:
		return false
	case i < 0:
		*all = append(*all, c)
		return true
	}
	before := (*all)[i]
	if before.Status == c.Status {
		c.LastTransitionTime = before.LastTransitionTime
	}
	(*all)[i] = c
	return before.Status != c.Status || before.Reason != c.Reason || before.Message != c.Message
}
