package access

// The types of reviews, for tests that read answers.
type (
	SelfSubjectReview        = selfSubjectReview
	SelfSubjectAccessReview  = selfSubjectAccessReview
	SelfSubjectRulesReview   = selfSubjectRulesReview
	SubjectAccessReview      = subjectAccessReview
	LocalSubjectAccessReview = localSubjectAccessReview
	TokenReview              = tokenReview
	RulesStatus              = rulesStatus
	TokenStatus              = tokenStatus
	UserInfo                 = userInfo
	ResourceAttributes       = resourceAttributes
	NonResourceAttributes    = nonResourceAttributes
	FieldSelector            = fieldSelector
	LabelSelector            = labelSelector
)
