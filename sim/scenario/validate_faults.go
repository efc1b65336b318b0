package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// maxOccurrences is how often a fault may happen in a run.
const maxOccurrences = 10_000

func (c *checker) fault(at string, f *Fault, s *Scenario) {
	if f.Kind == "" {
		c.wrong(at+".kind", "is missing", writeOneOf(faultKinds))
	}
	oneOf(c, at+".kind", f.Kind, faultKinds...)
	c.duration(at+".at", f.At)
	c.duration(at+".every", f.Every)
	c.duration(at+".for", f.For)
	c.duration(at+".delay", f.Delay)
	c.beforeEnd(at+".at", f.At, s)
	if least := cmp.Or(s.Duration, DefaultDuration) / maxOccurrences; f.Every > 0 && f.Every < least {
		c.wrong(at+".every", fmt.Sprintf("is %v", f.Every), fmt.Sprintf("repeat at most every %v, which is %d times", least, maxOccurrences))
	}
	if f.Every > 0 && f.For > f.Every {
		c.wrong(at+".for", "is longer than every", "make it at most "+f.Every.String())
	}
	c.when(at+".when", f)
	if !(f.Share >= 0 && f.Share <= 1) {
		c.wrong(at+".share", fmt.Sprintf("is %v", f.Share), "write a share above 0, up to 1")
	} else if f.Share == 0 {
		c.notZero(at+".share", "write a share above 0, or leave it out for all watchers")
	}
	c.jump(at+".jump", f, s)
	c.fieldsOfKind(at, f)
	c.target(at, f, s)
}

// fieldsOfKind checks that only fields are set that the fault's kind has, and those
// that it requires.
func (c *checker) fieldsOfKind(at string, f *Fault) {
	for _, field := range []struct {
		name     string
		set, may bool
	}{
		{"for", f.For != 0, f.Kind.Lasts()},
		{"when", f.When != nil, f.Kind.Lasts()},
		{"delay", f.Delay != 0, f.Kind == FaultDelay},
		{"jump", f.Jump != 0, f.Kind == FaultJump},
		{"group", f.Group != "", f.Kind == FaultPanic || f.Kind == FaultReconnect},
		{"share", f.Share != 0, f.Kind == FaultPanic || f.Kind == FaultReconnect},
	} {
		if field.set && !field.may && slices.Contains(faultKinds, f.Kind) {
			c.wrong(at+"."+field.name, "means nothing for kind "+string(f.Kind), "leave it out")
		}
	}
	if f.Kind == FaultDelay && f.Delay == 0 {
		c.wrong(at+".delay", "is missing", "write how much longer calls take, such as 20ms")
	}
	if f.Kind == FaultJump && f.Jump == 0 {
		c.wrong(at+".jump", fmt.Sprintf("is %v", f.Jump), "write how far the clock jumps, such as 5m or -1h")
	}
}

// jump checks how far the clock jumps, each time and in all.
func (c *checker) jump(at string, f *Fault, s *Scenario) {
	times := time.Duration(1)
	if f.Every > 0 {
		times += max(0, cmp.Or(s.Duration, DefaultDuration)-f.At-1) / f.Every
	}
	if f.Jump.Abs() > maxClockJump/times {
		c.wrong(at, fmt.Sprintf("is %v, and happens %d×", f.Jump, times), fmt.Sprintf("the most is %v in all", maxClockJump))
	}
}

// target checks that there are watchers that a panic or reconnect can affect.
func (c *checker) target(at string, f *Fault, s *Scenario) {
	if f.Kind != FaultPanic && f.Kind != FaultReconnect {
		return
	}
	affects := func(w Watcher) bool {
		return (f.Kind == FaultReconnect || w.Consumer == Handler) && (f.Group == "" || w.Name == f.Group)
	}
	switch {
	case slices.ContainsFunc(s.Watchers, affects):
	case f.Group != "" && !slices.ContainsFunc(s.Watchers, func(w Watcher) bool { return w.Name == f.Group }):
		c.wrong(at+".group", quoted(f.Group)+" is not a group of watchers", "there are "+listed(namesOf(s.Watchers)))
	case f.Kind == FaultPanic:
		c.wrong(at+".group", "there is no handler to panic"+inGroup(f.Group), "give a group of watchers consumer: handler")
	default:
		c.wrong(at+".group", "there are no watchers to reconnect", "add a group of watchers")
	}
}

func namesOf(watchers []Watcher) (names []string) {
	for _, w := range watchers {
		names = append(names, w.Name)
	}
	return names
}

func inGroup(name string) string {
	if name == "" {
		return ""
	}
	return " in group " + quoted(name)
}

// when checks that the condition is valid, and can hold for some call.
func (c *checker) when(at string, f *Fault) {
	if f.When == nil {
		return
	}
	before := c.found
	c.condition(at, f.When)
	if c.found > before {
		return
	}
	for _, op := range Operations {
		// A next does not wait, so it cannot be delayed.
		if may, _ := f.When.outcomes(op); may && !(f.Kind == FaultDelay && op == OnNext) {
			return
		}
	}
	if f.Kind == FaultDelay {
		c.wrong(at, "holds for no call that can be delayed", "a next cannot be: let it stick; combine operations with or")
		return
	}
	c.wrong(at, "holds for no call at all", "combine operations with or: each call is of one")
}

// condition checks that each part of the condition has exactly one field set.
func (c *checker) condition(at string, part *Condition) {
	set := 0
	for _, is := range []bool{len(part.And) > 0, len(part.Or) > 0, part.Not != nil, part.Operation != "", part.Probability != 0} {
		if is {
			set++
		}
	}
	if set != 1 {
		c.wrong(at, fmt.Sprintf("has %d of and, or, not, operation, probability", set), "write exactly one; combine several with and")
	}
	oneOf(c, at+".operation", part.Operation, Operations...)
	if part.Probability != 0 && !(part.Probability > 0 && part.Probability < 1) {
		c.wrong(at+".probability", fmt.Sprintf("is %v", part.Probability), "write one above 0 and below 1")
	}
	if part.Seed != 0 && part.Probability == 0 {
		c.wrong(at+".seed", "is without probability", "leave it out")
	}
	for i, and := range part.And {
		c.part(fmt.Sprintf("%s.and[%d]", at, i), and)
	}
	for i, or := range part.Or {
		c.part(fmt.Sprintf("%s.or[%d]", at, i), or)
	}
	if part.Not != nil {
		c.condition(at+".not", part.Not)
	}
}

func (c *checker) part(at string, part *Condition) {
	if part == nil {
		c.wrong(at, "is empty", "write a condition, such as operation: list")
		return
	}
	c.condition(at, part)
}
