echo "teardown of $PROCTOR_TASK in phase $PROCTOR_PHASE"
