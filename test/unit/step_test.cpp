// Steps between states: what may be written, and which states it names.
#include "core/step.hpp"

#include <gtest/gtest.h>

namespace idem {
namespace {

bool Allows(std::string_view written, StateText from, StateText to) {
    std::optional<Step> step = ReadStep(written);
    EXPECT_TRUE(step) << written;
    return step && IsStep(*step, from, to);
}

TEST(Step, LeadsFromOneStateToAnotherAndNotBack) {
    EXPECT_TRUE(Allows("new > paid", "new", "paid"));
    for (auto [from, to] : {std::pair{"paid", "new"},
                            {"new", "new"},
                            {"paid", "paid"},
                            {"new", "refunded"},
                            {"", ""},
                            {"new", "paid "},
                            {"New", "paid"},
                            {"ne", "paid"},
                            {"new", "paid2"}})
        EXPECT_FALSE(Allows("new > paid", from, to)) << from << " > " << to;
    EXPECT_TRUE(Allows("paid > paid", "paid", "paid"));
}

TEST(Step, BlanksAroundAStateDoNotCount) {
    for (const char *written : {"new>paid", " new >paid", "new> paid ", "   new   >   paid   ", "\tnew\n>\r\fpaid\v",
                                "\"new\">\"paid\"", " \"new\" > paid "})
        EXPECT_TRUE(Allows(written, "new", "paid")) << written;
    EXPECT_TRUE(Allows("in  transit > at the door", "in  transit", "at the door"));
    EXPECT_FALSE(Allows("in  transit > at the door", "in transit", "at the door"));
}

TEST(Step, QuotesKeepWhatHasAMeaning) {
    EXPECT_TRUE(Allows("\"a > b\" > c", "a > b", "c"));
    EXPECT_TRUE(Allows("c > \"a > b\"", "c", "a > b"));
    EXPECT_TRUE(Allows("\" a \" > b", " a ", "b"));
    EXPECT_TRUE(Allows("\"say \"\"go\"\"\" > b", "say \"go\"", "b"));
    EXPECT_FALSE(Allows("\"say \"\"go\"\"\" > b", "say \"\"go\"\"", "b"));
    EXPECT_TRUE(Allows("\"\"\"\" > b", "\"", "b"));
    EXPECT_FALSE(Allows("\"\"\"\" > b", "\"\"", "b"));
    EXPECT_TRUE(Allows("\"\" > b", "", "b"));
    EXPECT_FALSE(Allows("\"\" > b", std::nullopt, "b"));
}

TEST(Step, NullIsTheStateOfWhoHasNone) {
    for (const char *written : {"null > new", "NULL > new", " Null>new"}) {
        EXPECT_TRUE(Allows(written, std::nullopt, "new")) << written;
        EXPECT_FALSE(Allows(written, "null", "new")) << written;
        EXPECT_FALSE(Allows(written, "", "new")) << written;
    }
    EXPECT_TRUE(Allows("paid > null", "paid", std::nullopt));
    EXPECT_TRUE(Allows("\"null\" > new", "null", "new"));
    EXPECT_FALSE(Allows("\"null\" > new", std::nullopt, "new"));
    EXPECT_FALSE(Allows("nul\\ > new", std::nullopt, "new"));
    EXPECT_FALSE(Allows("nulls > new", std::nullopt, "new"));
}

TEST(Step, StatesAreAnyText) {
    EXPECT_TRUE(Allows("待支付 > 已支付", "待支付", "已支付"));
    EXPECT_TRUE(Allows("1 > 2", "1", "2"));
    EXPECT_TRUE(Allows("it's > - = <", "it's", "- = <"));
}

TEST(Step, WhatIsNoStepIsNone) {
    for (const char *written : {"",
                                " ",
                                "new",
                                "new paid",
                                ">",
                                "> paid",
                                "new >",
                                " > ",
                                "new >> paid",
                                "new > paid > refunded",
                                "new - paid",
                                "new -> paid -> x",
                                "\"new > paid",
                                "\"new\" paid > x",
                                "new\" > paid",
                                "new > pa\"id",
                                "new > \"paid\" x",
                                "new > \"paid",
                                "\"new\"\" > paid",
                                "a\"b\" > c",
                                "\""})
        EXPECT_FALSE(ReadStep(written)) << written;
}

}  // namespace
}  // namespace idem
